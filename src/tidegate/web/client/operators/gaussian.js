/** Gaussian noise on the grid: the discrete Gaussian in multiples of 2**-48, cut where its weights round to 0. */

import { Fraction } from "../fraction.js";
import { ONE, expMinus, timesFixed } from "../powers.js";
import { Refused } from "../refused.js";
import { FULL, forValues, placeIn, shortestRun } from "./tables.js";

const CUT = 8n; // standard deviations, at most
const WIDTH = new Fraction(3919928n, 1000000n); // width of the 95% interval, in standard deviations

export function gaussianNoise({ size: values, step, parameters }) {
  const sigma = "privacy" in parameters ? sigmaFor(values, parameters.privacy) : parameters.sigma.over(step);
  const exactly = table(sigma);
  const reach = (exactly.length - 1) / 2;
  if (reach === 0) {
    throw new Refused("gaussian-noise with this sigma does not change any value.", "Nothing was sent.");
  }
  const weights = exactly.map(Number);
  const draw = placeIn(weights);
  return {
    values,
    reportSize: values + 2 * reach,
    ordered: true,
    sample: (value, source) => value + draw(source),
    repeated: (answer) => answer,
    weights: (report) => forValues(values, (value) => exactly[report - value] ?? 0n),
    lifetimeGamma: () => null,
    recipe: () => ({ draw: "table", values, reach, weights }),
  };
}

/** Symmetric integer weights of a Gaussian with the sum 2**48; the rounding error goes to the middle. */
function table(sigma) {
  const half = fallingFrom(sigma);
  const total = half.slice(1).reduce((all, weight) => all + 2n * weight, half[0]);
  const side = half.slice(1).map((weight) => (weight * FULL) / total);
  while (side.length && side.at(-1) === 0n) side.pop();
  const middle = FULL - 2n * side.reduce((all, weight) => all + weight, 0n);
  return [...side.toReversed(), middle, ...side];
}

/** exp(-d**2 / (2 sigma**2)) for d = 0, 1, ... by two running products. */
function fallingFrom(sigma) {
  const inverse = new Fraction(1n).over(sigma.power(2));
  const shrink = expMinus(inverse);
  let [ratio, weight] = [expMinus(inverse.over(2n)), ONE];
  const half = [ONE];
  for (let left = sigma.times(CUT).floor() + 1n; left > 0n; left--) {
    weight = timesFixed(weight, ratio);
    ratio = timesFixed(ratio, shrink);
    half.push(weight);
  }
  return half;
}

/** A standard deviation, in sixteenths, whose 95% interval is at least privacy x range. */
function sigmaFor(values, privacy) {
  const wanted = privacy.times(values - 1);
  const first = wanted.times(16n).over(WIDTH).floor() - 1n;
  let sixteenths = first > 4n ? first : 4n;
  while (wanted.compare(widthOf(new Fraction(sixteenths, 16n))) > 0) sixteenths++;
  return new Fraction(sixteenths, 16n);
}

function widthOf(sigma) {
  const [first, last] = shortestRun(table(sigma));
  return last - first;
}
