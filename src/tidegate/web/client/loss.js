/** The privacy loss of questions, as exact fractions; null is unlimited. */

import { Fraction, ZERO, bitLength } from "./fraction.js";
import { ONE, expBelow } from "./powers.js";

const MICRO = 1_000_000n;

/** The loss that the parameters of a question state: epsilon, or that of a share of random reports; null if they state none. */
export function statedLoss({ size, parameters: { epsilon, random } }) {
  if (!random) return epsilon ?? null;
  const one = new Fraction(1n, 1n);
  return roundedLoss(one.plus(one.minus(random).times(size).over(random)));
}

/** What is drawn for a person: single questions, and groups of `together`, in the order of the questions. */
export function unitsOf({ questions, together }) {
  const units = [...questions.keys()].map((name) => together.find((names) => names.includes(name)) ?? [name]);
  return units.filter((unit, position) => units.findIndex((other) => other[0] === unit[0]) === position);
}

/** The largest sum of losses over the units that one person answers; null if one loss is unlimited. */
export function largestSum(collection, lossOf) {
  const losses = new Map([...collection.questions.keys()].map((name) => [name, lossOf(name)]));
  if ([...losses.values()].includes(null)) return null;
  const sums = unitsOf(collection).map((unit) => unit.reduce((sum, name) => sum.plus(losses.get(name)), ZERO));
  const largest = sums.toSorted((first, second) => second.compare(first)).slice(0, collection.ask ?? sums.length);
  return largest.reduce((sum, loss) => sum.plus(loss), ZERO);
}

/** The smallest epsilon of six decimals with e**epsilon at or above a ratio, verified with integers. */
export function roundedLoss(ratio) {
  if (ratio === null) return null;
  const first = Math.ceil((logarithm(ratio) - 1e-9) * 1e6);
  let loss = new Fraction(BigInt(Math.max(0, first)), MICRO);
  while (ratio.n * ONE > ratio.d * expBelow(loss)) loss = loss.plus(new Fraction(1n, MICRO));
  return loss;
}

/** The logarithm of any fraction above 0, even if it is too large for a double. */
function logarithm(ratio) {
  const near = ratio.toNumber();
  return near < 1e300 ? Math.log(near) : logOfWhole(ratio.n) - logOfWhole(ratio.d);
}

function logOfWhole(whole) {
  const shift = Math.max(0, bitLength(whole) - 60);
  return Math.log(Number(whole >> BigInt(shift))) + shift * Math.LN2;
}
