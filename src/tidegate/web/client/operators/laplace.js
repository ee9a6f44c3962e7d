/** Laplace noise on the grid: the discrete Laplace, clipped to the attribute's range (which loses no information). */

import { Fraction } from "../fraction.js";
import { ONE, expBelow, expMinus, timesFixed } from "../powers.js";
import { Refused } from "../refused.js";
import { say } from "../text.js";
import { FULL, forValues, placeIn } from "./tables.js";

export function laplaceNoise({ size: values, parameters }) {
  const tails = safeTails(values, parameters.epsilon); // P(d >= i), i = 1 .. values-1, in multiples of 2**-48
  const exactly = weightsOf(tails);
  const [reach, weights] = [values - 1, exactly.map(Number)];
  const draw = placeIn(weights);
  const atEnd = (distance) => (distance ? tails[distance - 1] : FULL - tails[0]);
  const inside = (distance) => exactly[reach + distance];
  return {
    values,
    reportSize: values,
    ordered: true,
    sample: (value, source) => Math.min(Math.max(value + draw(source) - reach, 0), values - 1),
    repeated: (answer) => answer,
    weights: (report) => {
      const weight = report === 0 || report === values - 1 ? atEnd : inside;
      return forValues(values, (value) => weight(Math.abs(report - value)));
    },
    lifetimeGamma: () => largestRatio(tails),
    recipe: () => ({ draw: "table, cut back to the range", values, reach, weights }),
  };
}

/** Tails with a loss slightly below epsilon if rounding requires it: checked on the integers of the draws. */
function safeTails(values, epsilon) {
  const limit = new Fraction(expBelow(epsilon), ONE);
  for (let hair = 44n; hair > 3n; hair--) {
    const tails = tailsOf(values, epsilon.times(new Fraction((1n << hair) - 1n, 1n << hair)));
    if (tails.at(-1) > 0n && largestRatio(tails).compare(limit) <= 0) return tails;
  }
  const what = `laplace-noise cannot keep epsilon ${say(epsilon)} on ${values} values with probabilities over 2**48.`;
  throw new Refused(what, "Nothing was sent.");
}

function tailsOf(values, epsilon) {
  const shrink = expMinus(epsilon.over(values - 1));
  let power = shrink;
  return forValues(values - 1, () => {
    const tail = (FULL * power) / (ONE + shrink);
    power = timesFixed(power, shrink);
    return tail;
  });
}

/** The noise weights; the last weight contains the rest of the tail. */
function weightsOf(tails) {
  const side = tails.map((here, place) => here - (tails[place + 1] ?? 0n));
  return [...side.toReversed(), FULL - 2n * tails[0], ...side];
}

/** Over all reports and pairs of values: at an end of the range, and inside it. */
function largestRatio(tails) {
  const ends = new Fraction(FULL - tails[0], tails.at(-1));
  const inside = weightsOf(tails).slice(tails.length, -1);
  if (inside.length < 2) return ends;
  const most = inside.reduce((high, one) => (one > high ? one : high));
  const least = inside.reduce((low, one) => (one < low ? one : low));
  const within = least ? new Fraction(most, least) : new Fraction(1n << 200n);
  return within.compare(ends) > 0 ? within : ends;
}
