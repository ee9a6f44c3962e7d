/** Randomized response among k categories: the true one with probability keep, else any other; optionally in two layers. */

import { WHOLE, below, coin } from "../bits.js";
import { FIRST, Fraction } from "../fraction.js";
import { ONE, expBelow } from "../powers.js";
import { FULL, forValues } from "./tables.js";

export function randomizedResponse({ size: values, parameters }) {
  const keep = parameters.random ? keepBeside(values, parameters.random) : keepFor(values, parameters.epsilon);
  const again = parameters.each ? secondKeep(values, keep, keepFor(values, parameters.each)) : FULL;
  const [first, second] = [new Fraction(keep, FULL), new Fraction(again, FULL)];
  const p = first.times(second).plus(FIRST.minus(first).times(FIRST.minus(second)).over(values - 1));
  const q = FIRST.minus(p).over(values - 1);
  const [same, other] = [p.n * q.d, q.n * p.d];
  const respond = (value, heads, source) => {
    if (coin(heads, source)) return value;
    const drawn = below(values - 1, source);
    return drawn < value ? drawn : drawn + 1;
  };
  return {
    values,
    reportSize: values,
    ordered: false,
    p,
    q,
    supports: (report, value) => report === value,
    sample: (value, source) => respond(value, Number(keep), source),
    repeated: (answer, source) => (again === FULL ? answer : respond(answer, Number(again), source)),
    weights: (report) => forValues(values, (value) => (report === value ? same : other)),
    lifetimeGamma: () => new Fraction(keep * BigInt(values - 1), BigInt(WHOLE) - keep),
    recipe: () => ({ draw: "response", values, keep: Number(keep), again: Number(again) }),
  };
}

/** e**epsilon / (e**epsilon + k - 1) in multiples of 2**-48, rounded down. */
function keepFor(values, epsilon) {
  const power = expBelow(epsilon);
  return (FULL * power) / (power + BigInt(values - 1) * ONE);
}

/** The probability of the true one if a share of all reports is a uniform draw: 1 - b + b / k. */
function keepBeside(values, random) {
  return FIRST.minus(random).plus(random.over(values)).times(FULL).floor();
}

/** The probability that the second layer keeps the first, so that both together keep the truth with the right probability. */
function secondKeep(values, keep, wanted) {
  const first = new Fraction(keep, FULL);
  const other = FIRST.minus(first).over(values - 1);
  return new Fraction(wanted, FULL).minus(other).times(FULL).over(first.minus(other)).floor();
}
