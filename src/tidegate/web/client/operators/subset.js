/** Subset selection: a set of fixed size that contains the true category more often than chance. */

import { WHOLE, below, coin } from "../bits.js";
import { FIRST, Fraction } from "../fraction.js";
import { ONE, expBelow } from "../powers.js";
import { FULL, forValues } from "./tables.js";

export function subset({ size: values, parameters }) {
  const power = new Fraction(expBelow(parameters.epsilon), ONE);
  const size = bestSize(values, power);
  const odds = power.times(size).over(values - size);
  const keep = Number(odds.times(FULL).over(odds.plus(1n)).floor());
  const p = new Fraction(keep, FULL);
  const q = p.times(size - 1).plus(FIRST.minus(p).times(size)).over(values - 1);
  const inside = BigInt(keep) * BigInt(values - size);
  const outside = BigInt(WHOLE - keep) * BigInt(size);
  return {
    values,
    reportSize: values,
    ordered: false,
    p,
    q,
    supports: (report, value) => report.includes(value),
    sample: (value, source) => {
      const held = new Set(coin(keep, source) ? [value] : []);
      while (held.size < size) {
        const other = below(values - 1, source);
        held.add(other < value ? other : other + 1);
      }
      return [...held].sort((one, other) => one - other);
    },
    repeated: (answer) => answer,
    weights: (report) => {
      const held = new Set(report);
      return forValues(values, (value) => (held.has(value) ? inside : outside));
    },
    lifetimeGamma: () => new Fraction(inside, outside),
    recipe: () => ({ draw: "subset", values, size, keep }),
  };
}

/** The size with the smallest variance: the better of the two integers around values / (e**epsilon + 1). */
function bestSize(values, power) {
  const low = Math.max(1, Number(new Fraction(values).over(power.plus(1n)).floor()));
  const variance = (size) => {
    const p = power.times(size).over(power.times(size).plus(values - size));
    const q = p.times(size - 1).plus(FIRST.minus(p).times(size)).over(values - 1);
    return q.times(FIRST.minus(q)).over(p.minus(q).power(2));
  };
  const sizes = [low, low + 1].filter((size) => size < values);
  return sizes.length === 2 && variance(sizes[1]).compare(variance(sizes[0])) < 0 ? sizes[1] : sizes[0];
}
