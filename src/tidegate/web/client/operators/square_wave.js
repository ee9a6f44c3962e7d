/** The square wave on the grid: near the value with one probability, anywhere else with a smaller one. */

import { WHOLE, below, coin } from "../bits.js";
import { Fraction } from "../fraction.js";
import { ONE, expBelow } from "../powers.js";
import { FULL, forValues } from "./tables.js";

export function squareWave({ size: values, parameters }) {
  const half = Number(widthOf(parameters.epsilon).times(values).floor());
  const wide = 2 * half + 1;
  const odds = new Fraction(expBelow(parameters.epsilon), ONE).times(wide).over(values - 1);
  const near = Number(odds.times(FULL).over(odds.plus(1n)).floor()); // the probability of a near report is never above the promise
  const nearEach = BigInt(near) * BigInt(values - 1);
  const farEach = BigInt(WHOLE - near) * BigInt(wide);
  return {
    values,
    reportSize: values + 2 * half,
    ordered: true,
    sample: (value, source) => {
      if (coin(near, source)) return value + below(wide, source);
      const far = below(values - 1, source);
      return far < value ? far : far + wide;
    },
    repeated: (answer) => answer,
    weights: (report) => forValues(values, (value) => (report - value >= 0 && report - value < wide ? nearEach : farEach)),
    lifetimeGamma: () => new Fraction(nearEach, farEach),
    recipe: () => ({ draw: "square wave", values, half, near }),
  };
}

/** b = (eps E - E + 1) / (2 E (E - 1 - eps)) with E = e**eps: the half-width of the near part as a fraction of the range. */
function widthOf(epsilon) {
  const power = new Fraction(expBelow(epsilon), ONE);
  const over = epsilon.times(power).minus(power).plus(1n);
  return over.over(power.times(2n).times(power.minus(1n).minus(epsilon)));
}
