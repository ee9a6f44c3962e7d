/** Noise on the grid from a table of whole weights, and the fewest neighbours that hold most of them. */

import { WHOLE, drawWhole } from "../bits.js";
import { Fraction } from "../fraction.js";

export const CERTAIN = new Fraction(19n, 20n);
export const FULL = BigInt(WHOLE);

/** A draw of a place in a table whose weights add up to 2**48. */
export function placeIn(weights) {
  const reached = [];
  weights.reduce((total, weight) => reached[reached.push(total + weight) - 1], 0);
  if (reached.at(-1) !== WHOLE) throw new RangeError("a table's weights add up to 2**48");
  return (source) => howManyUpTo(reached, drawWhole(source));
}

/** How many of the rising numbers are at most x, by halving. */
function howManyUpTo(rising, x) {
  let [low, high] = [0, rising.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rising[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** First and last of the fewest neighbouring entries that hold the confidence's share of all weight (BigInts). */
export function shortestRun(weights, confidence = CERTAIN) {
  const all = weights.reduce((total, weight) => total + weight, 0n);
  const wanted = confidence.times(all).ceil();
  let [held, start, best] = [0n, 0, [0, weights.length - 1]];
  weights.forEach((weight, end) => {
    held += weight;
    while (held - weights[start] >= wanted) held -= weights[start++];
    if (held >= wanted && end - start < best[1] - best[0]) best = [start, end];
  });
  return best;
}

/** One weight for every value. */
export const forValues = (values, weight) => Array.from({ length: values }, (_, value) => weight(value));
