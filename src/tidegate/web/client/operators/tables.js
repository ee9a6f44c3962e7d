/** Noise on the grid from a table of integer weights, and the shortest run with most of the weight. */

import { WHOLE, drawWhole } from "../bits.js";
import { Fraction } from "../fraction.js";

export const CERTAIN = new Fraction(19n, 20n);
export const FULL = BigInt(WHOLE);

/** Draw an index from a table whose weights have the sum 2**48. */
export function placeIn(weights) {
  const reached = [];
  weights.reduce((total, weight) => reached[reached.push(total + weight) - 1], 0);
  if (reached.at(-1) !== WHOLE) throw new RangeError("The weights of a table must have the sum 2**48.");
  return (source) => howManyUpTo(reached, drawWhole(source));
}

/** The number of sorted values that are at most x, by bisection. */
function howManyUpTo(rising, x) {
  let [low, high] = [0, rising.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rising[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** First and last index of the shortest run that has the confidence's fraction of all weight (BigInts). */
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

/** One weight per value. */
export const forValues = (values, weight) => Array.from({ length: values }, (_, value) => weight(value));
