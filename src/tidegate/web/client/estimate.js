/** Estimates from a few reports, as the holder computes them: shares of options, or a mean, with 95% intervals. */

import { FULL } from "./operators/tables.js";

const NORMAL_95 = 1.959963984540054; // 97.5% of a standard normal distribution are below it

/**
 * The share of every option, in order: { seen, of, share, low, high }. `seen` of `of` reports support the option.
 *
 * For categories, shown shares are the nearest distribution to the unbiased ones (collect/reconstruct/categories.py); for
 * chosen options each share is by itself (collect/shares.py).
 */
export function estimateShares(operator, reports, options = operator.values ?? operator.items) {
  const [p, q] = [operator.p.toNumber(), operator.q.toNumber()];
  const counts = Array.from({ length: options }, (_, option) => countOf(operator, reports, option));
  const raw = counts.map(({ seen, of }) => (seen / Math.max(of, 1) - q) / (p - q));
  const shown = operator.choices || options < operator.values ? raw.map(clipped) : nearestDistribution(raw);
  return counts.map((count, option) => {
    const expected = clipped(q + (p - q) * shown[option]);
    const wide = (NORMAL_95 * Math.sqrt((expected * (1 - expected)) / Math.max(count.of, 1))) / (p - q);
    const [low, high] = [Math.min(raw[option], shown[option]) - wide, Math.max(raw[option], shown[option]) + wide];
    return { ...count, share: shown[option], low: clipped(low), high: clipped(high) };
  });
}

/** How many reports support an option, and of how many: a report about one option supports or rejects that one only. */
function countOf(operator, reports, option) {
  const asked = operator.recipe().draw === "one-option" ? reports.filter((report) => Math.floor(report / 2) === option) : reports;
  return { seen: asked.filter((report) => operator.supports(report, option)).length, of: asked.length };
}

const clipped = (share) => Math.min(1, Math.max(0, share));

/** Subtract one amount from all shares and clip at zero (Duchi et al. 2008). */
function nearestDistribution(raw) {
  let [total, amount] = [0, 0];
  raw.toSorted((first, second) => second - first).forEach((share, position) => {
    total += share;
    const possible = (total - 1) / (position + 1);
    if (share > possible) amount = possible;
  });
  const masses = raw.map((share) => Math.max(share - amount, 0));
  const all = masses.reduce((sum, mass) => sum + mass, 0);
  return masses.map((mass) => mass / all);
}

/** The mean in steps of the grid: { mean, low, high }, within the range. Every report has an unbiased score. */
export function estimateMean(operator, reports) {
  const score = scoreOf(operator);
  const scores = reports.map(score);
  const mean = scores.reduce((sum, value) => sum + value, 0) / scores.length;
  const spread = scores.reduce((sum, value) => sum + (value - mean) ** 2, 0) / Math.max(scores.length - 1, 1);
  const wide = NORMAL_95 * Math.sqrt(spread / scores.length);
  const inside = (value) => Math.min(operator.values - 1, Math.max(0, value));
  return { mean: inside(mean), low: inside(mean - wide), high: inside(mean + wide) };
}

/** The unbiased estimate of the value from one report, in steps. */
function scoreOf(operator) {
  const { draw, values, half, near, keep, piecewise } = operator.recipe();
  const chance = near / Number(FULL);
  if (draw === "square wave") {
    const [wide, size] = [2 * half + 1, operator.reportSize];
    const [nearEach, farEach] = [chance / wide, (1 - chance) / (values - 1)];
    const slope = (nearEach - farEach) * wide;
    return (report) => (report - (farEach * size * (size - 1)) / 2) / slope - half;
  }
  const [middle, kept] = [(values - 1) / 2, keep / Number(FULL)];
  const firstEnd = piecewise ? operator.reportSize - 2 : 0;
  return (report) => {
    if (report >= firstEnd) return ((report - firstEnd - (1 - kept)) / (2 * kept - 1)) * (values - 1);
    return middle + (operator.gridPosition(report).toNumber() - middle) / chance;
  };
}
