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
export function codeOf(question, given) {
  const { universe } = question;
  if (universe.numeric) return binOf(universe, placeOfNumber(question, given));
  return universe.kind === "items" ? basketCode(question, given) : categoryCode(question, given);
}

const binOf = ({ starts }, place) => (starts ? starts.filter((start) => start <= place).length - 1 : Number(place));

function placeOfNumber({ attribute, universe }, given) {
  if (given === null || given === undefined || Number.isNaN(given)) {
    if (universe.missing === "lowest") return 0n;
    throw new Refused(
      `"${attribute}" needs a number; it was left empty.`,
      "This collection has no place for a missing number. Nothing was sent.",
    );
  }
  const number = exact(given);
  if (number === null) throw new Refused(`"${attribute}" needs a number.`, `${universe.says}. Nothing was sent.`);
  const nearest = number.minus(universe.low).over(universe.width).plus(new Fraction(1n, 2n)).floor();
  return nearest < 0n ? 0n : nearest >= universe.steps ? universe.steps - 1n : nearest;
}

function categoryCode({ attribute, universe }, given) {
  const code = universe.values.indexOf(given);
  if (code >= 0) return code;
  if (universe.missing === "value") return universe.listed;
  const some = universe.values.slice(0, 20).map(word).join(", ");
  throw new Refused(
    `"${attribute}" must be one of its ${commas(universe.listed)} listed values.`,
    `${some}${universe.listed > 20 ? ", ..." : ""}. Nothing was sent.`,
  );
}

/** Unknown and repeated items are refused. */
function basketCode({ attribute, universe }, given) {
  if (!Array.isArray(given) || given.some((name) => typeof name !== "string")) {
    throw new Refused(`"${attribute}" needs a list of items.`, "[] where there is none. Nothing was sent.");
  }
  const places = new Map(universe.vocabulary.map((name, code) => [name, code]));
  if (given.some((name) => !places.has(name))) {
    throw new Refused(
      `"${attribute}" names an item that is not one of its ${commas(places.size)}.`,
      "Leave it out, or check how it is written. Nothing was sent.",
    );
  }
  if (new Set(given).size !== given.length) {
    throw new Refused(`"${attribute}" names an item twice.`, "A basket is a set: name each once. Nothing was sent.");
  }
  return given.reduce((code, name) => code | (1n << BigInt(places.get(name))), 0n);
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
function lowestAt(universe, place) {
  const { starts, high, width } = universe;
  if (!starts || place < 0) return valueAt(universe, place);
  if (place < starts.length) return valueAt(universe, starts[place]);
  return high.plus(width.times(1 + place - starts.length));
}
