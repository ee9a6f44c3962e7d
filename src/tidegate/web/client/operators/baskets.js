/**
 * Operators on a set of items. A code is a BigInt with bit i set if item i is in the basket. A report lists item codes; if
 * plans differ by size, the size is sent as well, as an additional code after the items.
 */

import { below, coin, drawWhole } from "../bits.js";
import { Fraction, choose } from "../fraction.js";
import { Refused } from "../refused.js";
import { itemOdds, largestRatio } from "./basket_loss.js";
import { FULL } from "./tables.js";

const onGrid = (chance) => chance.times(FULL).round();
const codes = (many) => Array.from({ length: many }, (_, code) => code);

export function selectASize({ size: items, parameters, plans }) {
  const made = new Map(plans.map(({ size, keep, insert }) => [size, rounded(size, keep, insert)]));
  return byPlans("select-a-size", items, [...made.keys()], (size) => made.get(size), parameters.fixed, Math.max(...made.keys()));
}

export function cutAndPaste({ size: items, parameters }) {
  const { fixed, largest, cutoff } = parameters;
  const insert = new Fraction(onGrid(parameters.rho), FULL);
  const sizes = fixed ? [Number(fixed.floor())] : codes(Number(largest.floor()) + 1);
  const made = new Map();
  const plan = (size) => {
    if (!made.has(size)) made.set(size, rounded(size, cutAndPasteKeep(size, Number(cutoff.floor()), insert), insert));
    return made.get(size);
  };
  return byPlans("cut-and-paste", items, sizes, plan, fixed, Number(largest.floor()));
}

/** A plan in multiples of 2**-48: the rounding error goes to the likeliest count. */
function rounded(size, keep, insert) {
  const wholes = keep.map(onGrid);
  const likeliest = wholes.reduce((best, one, place) => (one > wholes[best] ? place : best), 0);
  wholes[likeliest] += FULL - wholes.reduce((all, one) => all + one, 0n);
  return { size, keep: wholes, insert: onGrid(insert) };
}

/** p[j] = sum over i <= min(K, j) of w_i C(m - i, j - i) rho**(j - i) (1 - rho)**(m - j), over one denominator. */
function cutAndPasteKeep(size, cutoff, rho) {
  const parts = BigInt(cutoff + 1);
  const first = Array.from({ length: Math.min(cutoff, size) + 1 }, () => 1n);
  first[first.length - 1] = parts - BigInt(first.length - 1);
  const [come, away, under] = [rho.n, rho.d - rho.n, rho.d];
  return Array.from({ length: size + 1 }, (_, j) => {
    const term = (weight, i) => weight * choose(size - i, j - i) * come ** BigInt(j - i) * under ** BigInt(i);
    const all = first.slice(0, j + 1).map(term).reduce((total, one) => total + one, 0n);
    return new Fraction(all * away ** BigInt(size - j), under ** BigInt(size) * parts);
  });
}

function byPlans(draw, items, sizes, plan, given, most) {
  const fixed = given ? Number(given.floor()) : null;
  const basketOperator = { items, sizes, plan, fixed, most, flip: null };
  return operator(basketOperator, {
    reportSize: items + (fixed === null ? sizes.length : 0),
    sample: (code, source) => sampleByPlan(basketOperator, basketOf(code, basketOperator), source),
    recipe: () => ({ draw, items, fixed, plans: sizes.map((size) => inNumbers(plan(size))) }),
  });
}

const inNumbers = ({ size, keep, insert }) => ({ size, keep: keep.map(Number), insert: Number(insert) });

/** The draws, in order: the cut to one size, the number of kept items, which ones, and a coin for every other item. */
function sampleByPlan({ items, sizes, plan, fixed }, basket, source) {
  const { size, keep, insert } = inNumbers(plan(fixed ?? basket.length));
  const held = toSize(basket, size, items, source);
  const drawn = drawWhole(source);
  let [stay, reached] = [0, keep[0]];
  while (drawn >= reached) reached += keep[++stay];
  const kept = new Set(firstOfShuffled(held, stay, source).slice(0, stay));
  const known = new Set(held);
  const report = codes(items).filter((item) => (known.has(item) ? kept.has(item) : coin(insert, source)));
  return fixed === null ? [...report, items + sizes.indexOf(basket.length)] : report;
}

/**
 * A basket of exactly `size` items: padded with codes after the items, which no report shows; a larger one, which only old
 * collections accept, is cut at random.
 */
function toSize(basket, size, items, source) {
  if (basket.length > size) return firstOfShuffled(basket, size, source).slice(0, size);
  return [...basket, ...Array.from({ length: size - basket.length }, (_, blank) => items + blank)];
}

/** `many` of the items, uniformly chosen, in front: place i changes with place i + below(left), for i = 0, 1, ... */
export function firstOfShuffled(list, many, source) {
  const held = [...list];
  for (let place = 0; place < many; place++) {
    const other = place + below(held.length - place, source);
    [held[place], held[other]] = [held[other], held[place]];
  }
  return held;
}

export function mask({ size: items, parameters }) {
  const stay = onGrid(parameters.keep);
  const come = parameters.insert ? onGrid(parameters.insert) : FULL - stay;
  const largest = parameters.largest ? Number(parameters.largest.floor()) : items;
  const flip = [new Fraction(stay, FULL), new Fraction(come, FULL)];
  const basketOperator = { items, sizes: codes(largest + 1), plan: null, fixed: null, flip };
  return operator(basketOperator, {
    reportSize: items,
    sample: (code, source) => {
      const basket = new Set(basketOf(code, basketOperator));
      return codes(items).filter((item) => coin(Number(basket.has(item) ? stay : come), source));
    },
    recipe: () => ({ draw: "mask", items, stay: Number(stay), come: Number(come), largest }),
  });
}

function operator(basketOperator, parts) {
  return {
    ...parts,
    values: null, // 2**items
    ordered: false,
    basket: true,
    tellsSize: basketOperator.fixed === null && basketOperator.flip === null,
    repeated: (answer) => answer,
    itemOdds: () => itemOdds(basketOperator),
    lifetimeGamma: () => largestRatio(basketOperator),
  };
}

/** The items of a code, ascending; a basket whose size has no plan is refused. */
function basketOf(code, { sizes, fixed, most }) {
  const bits = code.toString(2);
  const basket = [];
  for (let item = 0; item < bits.length; item++) if (bits[bits.length - 1 - item] === "1") basket.push(item);
  if (fixed !== null && basket.length > most) {
    throw new Refused(`A basket can have at most ${most} items; this one has ${basket.length}.`, "Leave items out.");
  }
  if (fixed !== null || sizes.includes(basket.length)) return basket;
  throw new Refused(
    `There is no plan for baskets of ${basket.length} items; the largest planned size is ${sizes.at(-1)}.`,
    "Leave items out, or let the question bring all baskets to one size.",
  );
}
