/** Uniform noise: an integer from -reach to reach, all equally likely. A report near an end reveals the value. */

import { below } from "../bits.js";
import { Fraction } from "../fraction.js";
import { forValues } from "./tables.js";

export function uniformNoise({ size: values, step, parameters }) {
  const { privacy, half_width: half } = parameters;
  const reach = privacy ? halfWidthFor(values, privacy) : Number(half.over(step).ceil());
  const wide = 2 * reach + 1;
  return {
    values,
    reportSize: values + 2 * reach,
    ordered: true,
    sample: (value, source) => value + below(wide, source),
    repeated: (answer) => answer,
    weights: (report) => forValues(values, (value) => (report - value >= 0 && report - value < wide ? 1n : 0n)),
    lifetimeGamma: () => null,
    recipe: () => ({ draw: "even", values, reach }),
  };
}

/** The smallest half-width h with ceil(0.95 (2h + 1)) - 1 >= privacy x range. */
function halfWidthFor(values, privacy) {
  const wanted = privacy.times(values - 1).ceil();
  const first = new Fraction(10n, 19n).times(wanted).floor() - 2n;
  let half = first > 1n ? first : 1n;
  while (new Fraction(19n, 20n).times(2n * half + 1n).ceil() - 1n < wanted) half++;
  return Number(half);
}
