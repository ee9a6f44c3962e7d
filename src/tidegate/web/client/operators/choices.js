/**
 * Operators on the options that a person chooses. A code is a BigInt with bit i set if option i is chosen. A report promises one
 * epsilon for any two sets; the shares of single options are estimated.
 */

import { WHOLE, below, belowBig, coin } from "../bits.js";
import { FIRST, Fraction, choose } from "../fraction.js";
import { ONE, expBelow } from "../powers.js";
import { Refused } from "../refused.js";
import { commas, say } from "../text.js";
import { firstOfShuffled } from "./baskets.js";
import { FULL } from "./tables.js";

/** At most `choose` options: a set of fixed size that meets the choices, padded with blanks, more often than chance. */
export function privset({ size: items, parameters }) {
  const most = Number(parameters.choose.floor());
  const codes = items + most;
  const power = expBelow(parameters.epsilon);
  const size = bestSize(items, most, power);
  const apart = choose(items, size);
  const meeting = choose(codes, size) - apart;
  const meet = (FULL * power * meeting) / (power * meeting + apart * ONE);
  const chance = new Fraction(meet, FULL);
  const [own, alone] = [choose(codes - 1, size - 1), choose(items - 1, size - 1)];
  const p = chance.times(own).over(meeting);
  const q = chance.times(own - alone).over(meeting).plus(FIRST.minus(chance).times(alone).over(apart));
  const gamma = () => new Fraction(meet * apart, (FULL - meet) * meeting);
  const trueCount = (source) => {
    let [position, count] = [belowBig(meeting, source), 0];
    while (position >= 0n) {
      count++;
      position -= choose(most, count) * choose(items, size - count);
    }
    return count;
  };
  return common(items, {
    p,
    q,
    supports: (report, option) => report.includes(option),
    reportSize: codes,
    sample: (code, source) => {
      const chosen = chosenOf(code, most);
      const padded = [...chosen, ...Array.from({ length: most - chosen.length }, (_, blank) => items + blank)];
      const known = new Set(padded);
      const others = Array.from({ length: codes }, (_, other) => other).filter((other) => !known.has(other));
      const count = coin(Number(meet), source) ? trueCount(source) : 0;
      const shown = firstOfShuffled(padded, count, source).slice(0, count);
      const rest = firstOfShuffled(others, size - count, source).slice(0, size - count);
      return [...shown, ...rest].sort((first, second) => first - second);
    },
    sentWords: (report, words) => {
      const blanks = report.filter((code) => code >= items).length;
      const shown = report.filter((code) => code < items).map((code) => words[code]);
      return [...shown, ...(blanks ? [`${commas(blanks)} blank${blanks > 1 ? "s" : ""}`] : [])].join(" and ");
    },
    concluded: () =>
      `Your report lists ${commas(size)} entries. One that you chose is on it with probability ${say(p, 2)}, any other with ` +
      `probability ${say(q, 2)}; from all of it together no odds change more than ${say(gamma())} times.`,
    lifetimeGamma: gamma,
    recipe: () => ({ draw: "privset", items, choose: most, size, meet: Number(meet) }),
  });
}

/** Any number of options: a report is about one option, drawn uniformly, with a randomized yes or no. */
export function oneOption({ size: items, parameters }) {
  const power = expBelow(parameters.epsilon);
  const keep = Number((FULL * power) / (power + ONE));
  const gamma = new Fraction(BigInt(keep), BigInt(WHOLE - keep));
  return common(items, {
    p: new Fraction(keep, FULL),
    q: FIRST.minus(new Fraction(keep, FULL)),
    supports: (report, option) => report === 2 * option + 1,
    reportSize: 2 * items,
    sample: (code, source) => {
      const [chosen, option] = [new Set(chosenOf(code, items)), below(items, source)];
      const isTrue = coin(keep, source);
      return 2 * option + Number(chosen.has(option) === isTrue);
    },
    sentWords: (report, words) => `${report % 2 ? "yes" : "no"} to ${words[Math.floor(report / 2)]}`,
    concluded: () =>
      `The option was drawn at random; the answer is yours with probability ${say(new Fraction(keep, FULL), 2)}. From it the holder ` +
      `can conclude that you chose this option with odds at most ${say(gamma)} times as high or as low as before, and nothing about ` +
      "the others.",
    lifetimeGamma: () => gamma,
    recipe: () => ({ draw: "one-option", items, keep }),
  });
}

const common = (items, parts) => ({ ...parts, items, values: null, ordered: false, choices: true, repeated: (answer) => answer });

/** The chosen options of a code, ascending; too many are refused. */
function chosenOf(code, most) {
  const bits = code.toString(2);
  const chosen = [];
  for (let option = 0; option < bits.length; option++) if (bits[bits.length - 1 - option] === "1") chosen.push(option);
  if (chosen.length <= most) return chosen;
  throw new Refused(
    `At most ${commas(most)} options can be chosen; these are ${commas(chosen.length)}.`,
    "Leave options out.",
  );
}

/** The first size of a report whose successor has a larger variance. */
function bestSize(items, most, power) {
  let [size, best] = [1, varianceOf(items, most, 1, power)];
  while (size < items) {
    const following = varianceOf(items, most, size + 1, power);
    if (following.compare(best) >= 0) break;
    [size, best] = [size + 1, following];
  }
  return size;
}

/** A number proportional to the variance of a rare option's share. */
function varianceOf(items, most, size, power) {
  const [every, apart] = [choose(items + most, size), choose(items, size)];
  const [own, alone] = [choose(items + most - 1, size - 1), choose(items - 1, size - 1)];
  const total = power * (every - apart) + apart * ONE;
  const wrong = power * (own - alone) + alone * ONE;
  return new Fraction(wrong * (total - wrong), alone ** 2n);
}
