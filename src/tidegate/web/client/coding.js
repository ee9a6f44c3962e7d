/** Encoding: from a person's value to its code, and from codes to text. Errors never quote a value. */

import { Fraction, exact } from "./fraction.js";
import { Refused } from "./refused.js";
import { commas, say } from "./text.js";
import { valueAt } from "./universe.js";

/**
 * Return the code of a true value; numbers outside the bounds are moved to the nearest bound.
 *
 * The code is a Number; for a set of items, a BigInt with bit i set if item i of the vocabulary is in the set.
 */
export function codeOf(question, value) {
  const { universe } = question;
  if (universe.numeric) return binOf(universe, indexOfNumber(question, value));
  return universe.kind === "items" ? basketCode(question, value) : categoryCode(question, value);
}

const binOf = ({ starts }, index) => (starts ? starts.filter((start) => start <= index).length - 1 : Number(index));

function indexOfNumber({ attribute, universe }, value) {
  if (value === null || value === undefined || Number.isNaN(value)) {
    if (universe.missing === "lowest") return 0n;
    throw new Refused(
      `"${attribute}" needs a number; it was left empty.`,
      "This collection does not accept missing numbers. Nothing was sent.",
    );
  }
  const number = exact(value);
  if (number === null) throw new Refused(`"${attribute}" needs a number.`, `${universe.says}. Nothing was sent.`);
  const nearest = number.minus(universe.low).over(universe.width).plus(new Fraction(1n, 2n)).floor();
  return nearest < 0n ? 0n : nearest >= universe.steps ? universe.steps - 1n : nearest;
}

function categoryCode({ attribute, universe }, value) {
  const code = universe.values.indexOf(value);
  if (code >= 0) return code;
  if (universe.missing === "value") return universe.listed;
  const some = universe.values.slice(0, 20).map(word).join(", ");
  throw new Refused(
    `"${attribute}" must be one of its ${commas(universe.listed)} listed values.`,
    `${some}${universe.listed > 20 ? ", ..." : ""}. Nothing was sent.`,
  );
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

/** A code, or a run of codes, as text: 34, 19 to 63, L1, missing. */
export function wordsOf({ universe }, first, last = first) {
  if (universe.numeric) {
    const [low, high] = [lowestAt(universe, first), lowestAt(universe, last + 1).minus(universe.width)];
    return low.equals(high) ? say(low) : `${say(low)} to ${say(high)}`;
  }
  if (universe.kind === "items") return universe.vocabulary[first] ?? "the number of your items";
  return first < universe.listed ? word(universe.values[first]) : "missing";
}

/** A category's value as text: true and false have a capital letter in every client. */
export function word(value) {
  return typeof value === "boolean" ? (value ? "True" : "False") : String(value);
}

/** The lowest value at an index; indexes outside continue in steps of the grid or of the last bin. */
function lowestAt(universe, index) {
  const { starts, high, width } = universe;
  if (!starts || index < 0) return valueAt(universe, index);
  if (index < starts.length) return valueAt(universe, starts[index]);
  return high.plus(width.times(1 + index - starts.length));
}
