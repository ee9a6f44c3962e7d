/**
 * The exact local loss of an operator on sets: the largest ratio of a report's probabilities under two baskets.
 *
 * The probability of a report with b items under a basket of r items depends only on r and on q, the number of common items.
 * If sizes are sent, baskets of the same size are compared (the size itself is not protected); else any two valid baskets.
 */

import { FIRST, Fraction, choose, largest, smallest, sum } from "../fraction.js";
import { FULL } from "./tables.js";

/** Gamma; null if some report is impossible under one basket and possible under another. */
export function largestRatio(operator) {
  const { items, sizes, fixed, flip } = operator;
  if (flip) return flipRatio(operator);
  if (fixed === null) return worst(sizes.flatMap((size) => said(items, size).map((many) => window(operator, [size], many))));
  return worst(said(items, fixed).map((many) => window(operator, upTo(Math.min(fixed, items)), many)));
}

const upTo = (most) => Array.from({ length: most + 1 }, (_, size) => size);

/** Report sizes that matter: if any number of items can be common, one report shows all. */
const said = (items, size) => (items >= 2 * size ? [size] : upTo(items));

/** P(report | basket) of a report of `many` items, for every size and number of common items, but for what all share. */
function window(operator, sizes, many) {
  return sizes.flatMap((size) =>
    upTo(Math.min(size, many))
      .filter((common) => common >= size + many - operator.items)
      .map((common) => likelihood(operator, size, common, many)),
  );
}

function likelihood({ items, plan, fixed }, size, common, many) {
  const { size: planned, keep, insert } = plan(fixed ?? size);
  const kept = (stay) => new Fraction(keep[stay], FULL * choose(planned, stay));
  const blanks = planned - size;
  const stays = sum(upTo(blanks).map((extra) => kept(common + extra).times(choose(blanks, extra))));
  const come = new Fraction(insert, FULL);
  const away = FIRST.minus(come);
  const strange = many - common;
  if (insert === 0n || insert === FULL) return stays.times(come.power(strange)).times(away.power(items - size - strange));
  return stays.times(away.over(come).power(common)).over(away.power(size));
}

function worst(windows) {
  let found = FIRST;
  for (const one of windows) {
    const [most, least] = [largest(one), smallest(one)];
    if (most.equals(0n)) continue;
    if (least.equals(0n)) return null;
    found = largest([found, most.over(least)]);
  }
  return found;
}

/** Items of one basket alone count by keep, those of the other alone by insert: as many as the sizes allow. */
function flipRatio({ items, sizes, flip: [keep, insert] }) {
  if (keep.equals(insert)) return FIRST;
  if ([keep, insert].some((chance) => chance.equals(0n) || chance.equals(1n))) return null;
  const [shown, hidden] = [keep.over(insert), FIRST.minus(keep).over(FIRST.minus(insert))];
  const [mine, yours] = [largest([shown, hidden]), largest([FIRST.over(shown), FIRST.over(hidden)])];
  const most = sizes.at(-1);
  const [logMine, logYours] = [Math.log(mine.toNumber()), Math.log(yours.toNumber())];
  const shares = upTo(Math.min(most, items)).map((alone) => [alone, Math.min(most, items - alone)]);
  const worth = ([ours, theirs]) => ours * logMine + theirs * logYours;
  const [ours, theirs] = shares.reduce((best, one) => (worth(one) > worth(best) ? one : best));
  return mine.power(ours).times(yours.power(theirs));
}

/** The largest factors by which a report raises the odds of an item it shows and lowers those of others; null: no limit. */
export function itemOdds({ sizes, plan, flip }) {
  const plans = flip ? [] : sizes.filter((size) => size).map(plan);
  const expected = ({ keep }) => keep.reduce((all, weight, stay) => all + weight * BigInt(stay), 0n);
  const byPlan = plans.map((one) => [new Fraction(expected(one), FULL * BigInt(one.size)), new Fraction(one.insert, FULL)]);
  const pairs = flip ? [flip] : byPlan;
  const shown = pairs.map(([stay, come]) => (come.equals(0n) ? null : stay.over(come)));
  const hidden = pairs.map(([stay, come]) => (stay.equals(1n) ? null : FIRST.minus(come).over(FIRST.minus(stay))));
  return [unlessUnlimited(shown), unlessUnlimited(hidden)];
}

function unlessUnlimited(factors) {
  return factors.includes(null) ? null : factors.length ? largest(factors) : FIRST;
}
