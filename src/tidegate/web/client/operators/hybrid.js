/** Hybrid: a position near the value or anywhere, or one of the two ends of the range; only the mean is estimated. */

import { WHOLE, below, coin } from "../bits.js";
import { Fraction } from "../fraction.js";
import { ONE, expBelow, expMinus } from "../powers.js";
import { FULL, forValues } from "./tables.js";

const FINE = 1_024; // the smallest number of steps of the positions
const LEAST_PIECEWISE = new Fraction(61n, 100n); // epsilon up to which the two ends alone have the smaller error

export function hybrid({ size: values, parameters: { epsilon } }) {
  const [power, root] = [expBelow(epsilon), expBelow(epsilon.over(2n))];
  const fine = Math.ceil(FINE / (values - 1));
  const steps = fine * (values - 1);
  const half = Number((BigInt(steps) * ONE) / (2n * root));
  const [wide, positions] = [2 * half + 1, steps + 2 * half + 1];
  const isMixed = epsilon.compare(LEAST_PIECEWISE) > 0;
  const piecewise = isMixed ? (FULL * (ONE - expMinus(epsilon.over(2n)))) / ONE : 0n;
  const odds = (power - ONE) * BigInt(wide);
  const near = (FULL * odds) / (BigInt(positions) * ONE + odds);
  const keep = (FULL * power) / (power + ONE);
  const firstEnd = piecewise ? positions : 0;
  // P(position | value) over 2**48 * positions * wide
  const outside = (FULL - near) * BigInt(wide);
  const inside = outside + near * BigInt(positions);
  const lowerSent = (value) => BigInt(value) * (FULL - keep) + BigInt(values - 1 - value) * keep;
  return {
    values,
    reportSize: firstEnd + 2,
    ordered: true,
    sample: (value, source) => {
      if (piecewise && coin(Number(piecewise), source)) {
        return coin(Number(near), source) ? value * fine + below(wide, source) : below(positions, source);
      }
      const end = Number(below(values - 1, source) < value);
      return firstEnd + (coin(Number(keep), source) ? end : 1 - end);
    },
    repeated: (answer) => answer,
    weights: (report) =>
      forValues(values, (value) => {
        if (report >= firstEnd) return report === firstEnd ? lowerSent(value) : BigInt(values - 1) * FULL - lowerSent(value);
        return report >= value * fine && report - value * fine < wide ? inside : outside;
      }),
    gridPosition: (report) =>
      report >= firstEnd ? new Fraction((report - firstEnd) * (values - 1)) : new Fraction(report - half, fine),
    lifetimeGamma: () => {
      const [ends, middle] = [new Fraction(keep, BigInt(WHOLE) - keep), new Fraction(inside, outside)];
      return piecewise && middle.compare(ends) > 0 ? middle : ends;
    },
    recipe: () => ({
      draw: "hybrid",
      values,
      fine,
      half,
      piecewise: Number(piecewise),
      near: Number(near),
      keep: Number(keep),
    }),
  };
}
