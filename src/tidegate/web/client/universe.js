/** The public values of an attribute: they have codes 0 .. size-1, and texts. */

import { MONTHS, SECONDS, dates, times, timestamps } from "./calendar.js";
import { Fraction, FIRST, exact } from "./fraction.js";
import { Refused } from "./refused.js";
import { commas, say } from "./text.js";
import { list, number, oneOf, taken, text, whole } from "./reading.js";

const MISSING = ["dropped", "value", "lowest"];
const OTHER = "(other)"; // the label of values that a category does not list
const DATES = oneOf(["day", "week", ...Object.keys(MONTHS)]);
const TIMES = oneOf(Object.keys(SECONDS));
const CLAMPED = { outside: oneOf(["clamp", "missing"]) };

/** Read the universe of a question. */
export function readUniverse(content, where) {
  const kind = oneOf(Object.keys(KINDS))(content?.kind, `${where}.kind`);
  return Object.freeze(KINDS[kind](content, where));
}

const MOMENT = { kind: text, from: text, to: text, missing: oneOf(MISSING) };

const KINDS = {
  integer: (content, where) => {
    const needed = { kind: text, from: whole, to: whole, missing: oneOf(MISSING) };
    const { from, to, missing, outside, bins = [] } = taken(content, where, needed, { bins: list(whole), ...CLAMPED });
    const [low, high, ...cuts] = [from, to, ...bins].map((one) => new Fraction(one));
    const says = (size) => `${commas(size)} whole numbers from ${commas(from)} to ${commas(to)}`;
    return numeric({ kind: "integer", low, high, width: FIRST, cuts, missing, outside, says });
  },
  grid,
  decimal: grid,
  date: (content, where) => dates(taken(content, where, { ...MOMENT, grid: DATES }, CLAMPED)),
  timestamp: (content, where) => timestamps(taken(content, where, { ...MOMENT, grid: TIMES }, { zone: text, ...CLAMPED })),
  time: (content, where) => times(taken(content, where, { ...MOMENT, grid: TIMES }, CLAMPED)),
  boolean: (content, where) => {
    const { missing } = taken(content, where, { kind: text, missing: oneOf(["dropped", "value"]) });
    const values = [false, true];
    return { kind: "boolean", values, missing, content, listed: 2, size: 2 + (missing === "value"), says: "true or false" };
  },
  category: (content, where) => {
    const needed = { kind: text, values: list((value) => value), missing: oneOf(MISSING) };
    const file = { values_from: text, column: text, sha256: text };
    const given = taken(content, where, needed, { outside: oneOf(["missing", "other"]), ...file });
    checkCategory(given);
    const [count, other] = [given.values.length, given.outside === "other"];
    const values = other ? [...given.values, OTHER] : given.values;
    const says = `${count === 1 ? "1 listed value" : `${commas(count)} listed values`}${other ? ` and ${OTHER}` : ""}`;
    const [listed, size] = [values.length, values.length + (given.missing === "value")];
    return { ...given, kind: "category", values, listed, size, other, content, says };
  },
  items: (content, where) => {
    const given = taken(content, where, { kind: text, vocabulary: list(text), missing: oneOf(MISSING) });
    const size = given.vocabulary.length;
    const once = new Set(given.vocabulary).size === size;
    if (!size || !once) throw new Refused("Items require a vocabulary that names each item once.");
    return { ...given, kind: "items", size, content, says: `any set of ${commas(size)} items` };
  },
  key: (_content, where) => {
    throw new Refused(`${where} is a key: it names the person and is never collected.`);
  },
  text: (content, where) => {
    const { missing } = taken(content, where, { kind: text, missing: oneOf(["dropped", "value"]) }, { buckets: whole });
    return { kind: "text", missing, content, size: 2 ** 64, says: "text without a list of values" };
  },
};

function grid(content, where) {
  const needed = { kind: text, from: number, to: number, step: number, missing: oneOf(MISSING) };
  const given = taken(content, where, needed, { bins: list(number), ...CLAMPED });
  const { from: low, to: high, step: width } = given;
  if (width.n <= 0n) throw new Refused("A grid requires a step above 0.");
  if (!high.minus(low).over(width).whole) {
    throw new Refused(`A grid from ${say(low)} in steps of ${say(width)} does not reach ${say(high)}.`);
  }
  const says = (size) => `${commas(size)} numbers from ${say(low)} to ${say(high)} in steps of ${say(width)}`;
  return numeric({ ...given, low, high, width, cuts: given.bins ?? [], says });
}

function checkCategory({ values, missing }) {
  const kinds = new Set(values.map((value) => typeof value));
  if (missing === "lowest") throw new Refused("A category has no lowest value: `missing` must be \"dropped\" or \"value\".");
  if (kinds.size !== 1 || ![...kinds].every((kind) => ["string", "number", "boolean"].includes(kind))) {
    throw new Refused("A category requires a list of values that are all text, all whole numbers, or all true/false.");
  }
  if (new Set(values).size !== values.length) throw new Refused("A category lists one of its values twice.");
}

/** A number on a public grid of `steps` values. `starts` contains the index at which each bin starts, if there are bins. */
function numeric(given) {
  const { low, high, width, cuts } = given;
  if (high.compare(low) < 0) throw new Refused("A numeric column needs from <= to.");
  const steps = high.minus(low).over(width).floor() + 1n;
  const starts = cuts.length ? [0n, ...cuts.map((cut) => cut.minus(low).over(width).ceil())] : null;
  const rising = !starts || (starts.every((start, i) => !i || start > starts[i - 1]) && starts.at(-1) < steps);
  if (!rising) {
    throw new Refused(`The bins of a column from ${say(low)} to ${say(high)} must rise strictly inside its bounds.`);
  }
  const size = starts ? starts.length : Number(steps);
  return { ...given, numeric: true, steps, starts, size, noun: "a number", position: positionOn(low, width), says: given.says(steps) };
}

/** A function that returns where a number is between the values of a grid; null if it is not a number. */
function positionOn(low, width) {
  return (value) => exact(value)?.minus(low).over(width) ?? null;
}

/** The value at an index of the grid. */
export const valueAt = (universe, place) => universe.low.plus(universe.width.times(BigInt(place)));

/** The distance between neighboring values: the grid's width; 1 for bins and categories. */
export const stepOf = (universe) => (universe.numeric && !universe.starts ? universe.width : FIRST);
