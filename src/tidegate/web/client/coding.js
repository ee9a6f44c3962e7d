/** Encoding: from a person's value to its code, and from codes to text. Errors never quote a value. */

import { Fraction, fraction } from "./fraction.js";
import { Refused } from "./refused.js";
import { sha256, utf8 } from "./sha256.js";
import { commas, say } from "./text.js";
import { valueAt } from "./universe.js";

/**
 * Return the code of a true value. One outside the bounds is moved to the nearest or refused, as `outside` says.
 *
 * The code is a Number; for a set of items, a BigInt with bit i set if item i of the vocabulary is in the set; for a text, a BigInt
 * of 64 bits.
 */
export function codeOf(question, value) {
  const { universe } = question;
  if (universe.numeric) return binOf(universe, indexOfNumber(question, value));
  if (universe.kind === "text") return textCode(question, value);
  return universe.kind === "items" ? basketCode(question, value) : categoryCode(question, value);
}

const binOf = ({ starts }, index) => (starts ? starts.filter((start) => start <= index).length - 1 : Number(index));

function indexOfNumber({ attribute, universe }, value) {
  const { missing, outside, noun, steps } = universe;
  if (value === null || value === undefined || Number.isNaN(value)) {
    if (missing === "lowest") return 0n;
    throw new Refused(
      `"${attribute}" needs ${noun}; it was left empty.`,
      "This collection does not accept missing answers. Nothing was sent.",
    );
  }
  const position = universe.position(value);
  if (position === null) throw new Refused(`"${attribute}" needs ${noun}.`, `${universe.says}. Nothing was sent.`);
  const exactly = fraction(position);
  if (outside === "missing" && (exactly.compare(0n) < 0 || exactly.compare(steps - 1n) > 0)) {
    if (missing === "lowest") return 0n;
    throw new Refused(`"${attribute}" is outside its range.`, `${universe.says}. Nothing was sent.`);
  }
  const nearest = exactly.plus(new Fraction(1n, 2n)).floor();
  return nearest < 0n ? 0n : nearest >= steps ? steps - 1n : nearest;
}

function categoryCode({ attribute, universe }, value) {
  const code = universe.values.indexOf(value);
  if (code >= 0) return code;
  if (universe.other && value !== null && value !== undefined) return universe.listed - 1;
  if (universe.missing === "value") return universe.listed;
  const some = universe.values.slice(0, 20).map((value) => word(value, universe)).join(", ");
  throw new Refused(
    `"${attribute}" must be one of its ${commas(universe.listed)} listed values.`,
    `${some}${universe.listed > 20 ? ", ..." : ""}. Nothing was sent.`,
  );
}

/** 64 bits: the first bytes of a text, cut between two characters and padded with zeros, or those of its SHA-256. */
function textCode({ attribute, parameters }, value) {
  const isText = typeof value === "string" && value && !value.includes("\0") && !/\p{Surrogate}/u.test(value);
  if (!isText) {
    throw new Refused(`"${attribute}" needs a text of at least one character.`, "Empty answers are not sent. Nothing was sent.");
  }
  const bytes = parameters.hashed?.n ? sha256(utf8(value)).slice(0, 8) : firstBytes(value);
  return Array.from({ length: 8 }, (_, place) => BigInt(bytes[place] ?? 0)).reduce((code, byte) => code * 256n + byte, 0n);
}

function firstBytes(value) {
  const bytes = [];
  for (const character of value) {
    const next = utf8(character);
    if (bytes.length + next.length > 8) break;
    bytes.push(...next);
  }
  return bytes;
}

/** Unknown and repeated items are refused. */
function basketCode({ attribute, universe }, names) {
  if (!Array.isArray(names) || names.some((name) => typeof name !== "string")) {
    throw new Refused(`"${attribute}" needs a list of items.`, "Use [] for an empty basket. Nothing was sent.");
  }
  const codes = new Map(universe.vocabulary.map((name, code) => [name, code]));
  if (names.some((name) => !codes.has(name))) {
    throw new Refused(
      `"${attribute}" names an unknown item: it is not one of its ${commas(codes.size)} items.`,
      "Leave it out, or check its spelling. Nothing was sent.",
    );
  }
  if (new Set(names).size !== names.length) {
    throw new Refused(`"${attribute}" names an item twice.`, "Name each item once. Nothing was sent.");
  }
  return names.reduce((code, name) => code | (1n << BigInt(codes.get(name))), 0n);
}

/** A code, or a run of codes, as text: 34, 19 to 63, 2024-03-01 to 2024-03-31, L1, missing. */
export function wordsOf({ universe }, first, last = first) {
  if (universe.span) return universe.span(first, last);
  if (universe.numeric) {
    const [low, high] = [lowestAt(universe, first), lowestAt(universe, last + 1).minus(universe.width)];
    return low.equals(high) ? say(low) : `${say(low)} to ${say(high)}`;
  }
  if (universe.kind === "items") return universe.vocabulary[first] ?? "the number of your items";
  return first < universe.listed ? word(universe.values[first], universe) : "missing";
}

/** A category's value as text: listed true and false have a capital letter in every client; those of a boolean do not. */
export function word(value, { kind }) {
  return typeof value === "boolean" && kind !== "boolean" ? (value ? "True" : "False") : String(value);
}

/** The lowest value at an index; indexes outside continue in steps of the grid or of the last bin. */
function lowestAt(universe, index) {
  const { starts, high, width } = universe;
  if (!starts || index < 0) return valueAt(universe, index);
  if (index < starts.length) return valueAt(universe, starts[index]);
  return high.plus(width.times(1 + index - starts.length));
}
