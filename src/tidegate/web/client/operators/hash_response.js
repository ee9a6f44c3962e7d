/**
 * Hash response: each person hashes values to two cells by a seed drawn once, and responds with a randomized cell.
 *
 * A seed has 1 + digits bits. It sends value v to the parity of the bits that floor(seed / 2) and v share, plus the last bit of
 * the seed. A report is the code 2 * seed + cell. Permanent answers belong to cells, so a person has at most two of them.
 */

import { below } from "../bits.js";
import { FIRST, Fraction } from "../fraction.js";
import { randomizedResponse } from "./response.js";
import { forValues } from "./tables.js";

export function hashResponse({ size: values, parameters }) {
  const cells = randomizedResponse({ size: 2, parameters });
  const seeds = 2 << (32 - Math.clz32(values - 1));
  const { p } = cells;
  const [same, other] = [p.n, p.d - p.n];
  const memoryCode = (value, seed) => 2 * seed + cellOf(value, seed);
  const samplePermanent = (code, source) => 2 * (code >> 1) + cells.sample(code & 1, source);
  const supports = (report, value) => cellOf(value, report >> 1) === (report & 1);
  const supportedCount = (report) => {
    const lowest = (report >> 2) & -(report >> 2);
    if (!lowest) return supports(report, 0) ? values : 0;
    const runs = Math.floor(values / (2 * lowest));
    const rest = values - 2 * lowest * runs;
    return runs * lowest + (supports(report, values - rest) ? Math.min(rest, lowest) : Math.max(rest - lowest, 0));
  };
  return {
    values,
    reportSize: 2 * seeds,
    ordered: false,
    p,
    q: new Fraction(1n, 2n),
    supports,
    supportedCount,
    drawSeed: (source) => below(seeds, source),
    memoryCode,
    samplePermanent,
    sample: (value, source) => samplePermanent(memoryCode(value, below(seeds, source)), source),
    repeated: (answer, source) => 2 * (answer >> 1) + cells.repeated(answer & 1, source),
    weights: (report) => forValues(values, (value) => (supports(report, value) ? same : other)),
    likeliest: (report) => {
      const ties = supportedCount(report);
      if (!ties) return { best: 0, ties: values, chance: new Fraction(1n, values) };
      const best = supports(report, 0) ? 0 : (report >> 2) & -(report >> 2);
      return { best, ties, chance: p.over(p.times(ties).plus(FIRST.minus(p).times(values - ties))) };
    },
    lifetimeGamma: cells.lifetimeGamma,
    recipe: () => {
      const { keep, again } = cells.recipe();
      return { draw: "hash-response", values, seeds, keep, again };
    },
  };
}

/** The cell of a value: the parity of the shared bits, plus the last bit of the seed. */
function cellOf(value, seed) {
  let bits = (seed >> 1) & value;
  for (let shift = 16; shift; shift >>= 1) bits ^= bits >> shift;
  return (bits ^ seed) & 1;
}
