/** A description of what is sent and what the holder can conclude, for the respondent. */

import { wordsOf } from "./coding.js";
import { Fraction } from "./fraction.js";
import { shortestRun } from "./operators/tables.js";
import { commas, say } from "./text.js";

/** We will send 41. From it the holder can conclude that your "age" is between 19 and 63 with 95% certainty. */
export function readAloud(question, operator, report) {
  return `We will send ${sentWords(question, operator, report)}. ${concluded(question, operator, report)}`;
}

/** The report as text; a noisy number can be outside the attribute's bounds. */
export function sentWords(question, operator, report) {
  if (operator.texts) return operator.sentWords(report);
  if (operator.choices) return operator.sentWords(report, question.universe.vocabulary);
  if (operator.gridPosition) {
    const { low, width } = question.universe;
    return say(low.plus(width.times(operator.gridPosition(report))));
  }
  if (operator.supportedCount) {
    const several = `${commas(operator.supportedCount(report))} of the ${commas(operator.values)} values`;
    return `the number ${commas(report)}, which stands for ${several}`;
  }
  if (Array.isArray(report)) return report.map((code) => wordsOf(question, code)).join(" and ") || "an empty list";
  return wordsOf(question, report - Math.floor((operator.reportSize - operator.values) / 2));
}

/** What a holder concludes who considered every value equally likely before. */
export function concluded(question, operator, report) {
  if (operator.choices || operator.texts) return operator.concluded();
  if (operator.basket) return ofItems(operator);
  if (operator.ordered) return ofNumber(question, operator.weights(report));
  return ofCategory(question, operator.values, operator.likeliest?.(report) ?? likeliest(operator.weights(report)));
}

function ofNumber(question, weights) {
  const [first, last] = shortestRun(weights);
  if (first === 0 && last === weights.length - 1) {
    return `From it the holder cannot rule out any "${question.attribute}" with 95% certainty.`;
  }
  const words = wordsOf(question, first, last).replaceAll(" to ", " and ");
  const between = words.includes(" and ") ? "between " : "";
  return `From it the holder can conclude that your "${question.attribute}" is ${between}${words} with 95% certainty.`;
}

function likeliest(weights) {
  const most = weights.reduce((high, weight) => (weight > high ? weight : high));
  const all = weights.reduce((total, weight) => total + weight, 0n);
  const ties = weights.filter((weight) => weight === most).length;
  return { best: weights.indexOf(most), ties, chance: new Fraction(most, all) };
}

function ofCategory(question, values, { best, ties, chance }) {
  const which = ties === 1 ? wordsOf(question, best) : `any one of the ${commas(ties)} likeliest values`;
  const right = `is right with probability ${say(chance, 2)} (before: ${say(new Fraction(1n, values), 2)})`;
  return `From it the holder can guess that your "${question.attribute}" is ${which}, and ${right}.`;
}

/** The odds of a single item, over all sizes of a basket; then the odds of any conclusion. */
function ofItems(operator) {
  const [shown, hidden] = operator.itemOdds();
  const high = shown === null ? "is certainly in your basket" : `is in your basket with odds ${say(shown)} times as high`;
  const low = hidden === null ? "certainly not" : `with odds ${say(hidden)} times as low`;
  const gamma = operator.lifetimeGamma();
  const most = gamma === null ? "whole baskets can be ruled out" : `no odds change more than ${say(gamma)} times`;
  const size = operator.tellsSize ? " The number of your items is sent in clear." : "";
  return (
    `From it the holder can conclude that an item shown, by itself, ${high} as before, and one not shown ${low}; ` +
    `from all of it together ${most}.${size}`
  );
}
