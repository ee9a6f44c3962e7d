/** Optimized unary encoding: each category is reported independently, the true one with probability 1/2, others rarely. */

import { WHOLE, coin } from "../bits.js";
import { FIRST, Fraction } from "../fraction.js";
import { ONE, expBelow } from "../powers.js";
import { FULL, forValues } from "./tables.js";

const FAIR = WHOLE / 2;

export function unary({ size: values, parameters }) {
  const rare = rareFor(parameters.epsilon);
  const stay = parameters.each ? stayFor(rare, rareFor(parameters.each)) : FULL;
  const [first, second] = [new Fraction(rare, FULL), new Fraction(stay, FULL)];
  const q = first.times(second).plus(FIRST.minus(first).times(FIRST.minus(second)));
  const codes = forValues(values, (code) => code);
  return {
    values,
    reportSize: values,
    ordered: false,
    p: new Fraction(1n, 2n),
    q,
    supports: (report, value) => report.includes(value),
    sample: (value, source) => codes.filter((code) => coin(code === value ? FAIR : Number(rare), source)),
    repeated: (answer, source) => {
      if (stay === FULL) return answer;
      const held = new Set(answer);
      return codes.filter((code) => coin(Number(stay), source) === held.has(code));
    },
    weights: (report) => {
      const held = new Set(report);
      return codes.map((code) => (held.has(code) ? q.d - q.n : q.n));
    },
    lifetimeGamma: () => new Fraction(FULL - rare, rare),
    recipe: () => ({ draw: "unary", values, rare: Number(rare), stay: Number(stay) }),
  };
}

/** 1 / (e**epsilon + 1) in multiples of 2**-48, rounded up. */
function rareFor(epsilon) {
  return new Fraction(FULL * ONE, expBelow(epsilon) + ONE).ceil();
}

/** The probability that a stored bit is kept, so that a single report has the right loss. */
function stayFor(rare, wanted) {
  return new Fraction((FULL - rare - wanted) * FULL, FULL - 2n * rare).floor();
}
