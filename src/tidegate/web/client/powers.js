/** Powers of e in integers: a fixed-point number is a BigInt over 2**128. */

const PLACES = 128n;
export const ONE = 1n << PLACES;

/** A number of at most e**power, with a relative error of at most 2**-100: the terms are positive and rounded down. */
export function expBelow(power) {
  let [total, term] = [ONE, ONE];
  for (let step = 1n; term; step++) {
    term = (term * power.n) / (power.d * step);
    total += term;
  }
  return total;
}

/** e**-power, rounded down from the inverse of `expBelow`; 0 for powers above 100. */
export function expMinus(power) {
  return power.compare(100n) <= 0 ? (ONE * ONE) / expBelow(power) : 0n;
}

/** The product of two fixed-point numbers, rounded down. */
export function timesFixed(one, other) {
  return (one * other) >> PLACES;
}
