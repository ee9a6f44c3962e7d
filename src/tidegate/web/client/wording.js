/**
 * The sentences of a poll's form: templates in the reader's language, filled with numbers from the operator.
 *
 * Counts are rounded to the nearest integer and say "about"; a limit is rounded up and says "at most". The texts are those of
 * web/texts/form.LANGUAGE.json, and the sentences are the same as in collect/respondent_texts.py.
 */

import { wordsOf } from "./coding.js";
import { FIRST, Fraction } from "./fraction.js";
import { FULL } from "./operators/tables.js";
import { commas, say } from "./text.js";

const SIDES = 6; // of a die
const DIGITS = 6; // of numbers in sentences
const MOST_DECIMALS = 15;
const PAUSE = " | "; // between the odds of a question and what follows from them

/** The texts of a form in one language: `fill(key, values)` fills a template, numbers have the format of the language. */
export class Wording {
  constructor(texts, poll, language) {
    Object.assign(this, { texts, poll, language });
  }

  fill(key, values = {}) {
    if (!Object.hasOwn(this.texts, key)) throw new RangeError(`There is no text "${key}".`);
    return this.texts[key].replace(/\{(\w+)\}/g, (_, name) => {
      if (!Object.hasOwn(values, name)) throw new RangeError(`The text "${key}" needs "${name}".`);
      return values[name];
    });
  }

  /** A text of the poll by language; the first language if there is none. */
  own(byLanguage) {
    return byLanguage[this.language] ?? byLanguage[this.poll.languages[0]];
  }

  question(name) {
    return this.own(this.poll.questions[name].text);
  }

  /** The label of a value of a question by its code. */
  label(name, question, code) {
    const { universe } = question;
    if (universe.kind !== "items" && !universe.numeric && code >= universe.listed) return this.fill("field.none");
    const word = wordsOf(question, code);
    const labels = this.poll.questions[name].options ?? {};
    return Object.hasOwn(labels, word) ? this.own(labels[word]) : word;
  }

  quoted(text) {
    return this.fill("quote", { text });
  }

  whole(number) {
    return this.localized(commas(number));
  }

  number(value, digits = DIGITS) {
    return this.localized(say(value, digits));
  }

  percent(share) {
    return this.fill("percent", { n: this.whole(Math.round(100 * share)) });
  }

  list(words) {
    return words.join(this.texts["list.separator"]);
  }

  localized(digits) {
    return digits.replace(/[,.]/g, (mark) => this.texts[mark === "," ? "number.group" : "number.decimal"]);
  }

  /** The sentences about a question: its odds as counts of people, then the process. */
  sentences(name, question, operator) {
    return this.#filled(name, question, operator).map((text) => text.replace(PAUSE, " "));
  }

  /** The odds of a question without what follows from them. */
  odds(name, question, operator) {
    return this.#filled(name, question, operator)[0].split(PAUSE)[0];
  }

  #filled(name, question, operator) {
    const { kind, numeric } = question.universe;
    const labels = numeric || kind === "text" || question.size < 2 ? [] : [0, 1].map((code) => this.label(name, question, code));
    return [...statements(question, operator, labels, this)].map(([key, values]) => this.fill(key, values));
  }
}

function statements(question, operator, labels, words) {
  if (operator.choices) return ofChoices(operator, words);
  if (operator.p) return ofCategories(question, operator, labels, words);
  const { universe } = question;
  const hasMean = universe.numeric && !universe.span && !universe.starts;
  if (question.operator === "square-wave" && hasMean) return ofNear(universe, operator, words);
  if (question.operator === "hybrid" && hasMean) return ofMean(universe, operator, words);
  return ofOthers(operator, words);
}

function* ofCategories(question, operator, labels, words) {
  const { p, q, values: k } = operator;
  const recipe = operator.recipe();
  if (recipe.draw === "response" || recipe.size === 1) {
    const [of, n] = counts(words, FIRST.minus(p));
    const after = atMost(words, p);
    const [other, own] = labels.map((label) => words.quoted(label));
    yield k === 2 ? ["chances.two", { of, own, other, n, after }] : ["chances.options", { of, n, k: words.whole(k), after }];
    yield randomShare(question, FIRST.minus(p).times(k).over(k - 1), words);
  } else {
    const [of, inside, outside] = counts(words, p, q);
    const chances = { of, p: inside, q: outside, after: afterOf(words, gammaOf(operator)) };
    if (recipe.draw === "subset") {
      yield ["chances.subset", { ...chances, w: words.whole(recipe.size), k: words.whole(k) }];
      yield ["process.subset", { p: inside, of }];
    } else {
      yield ["chances.group", chances];
      yield groupProcess(operator, words);
    }
  }
  const lifetime = operator.lifetimeGamma();
  if (!lifetime.equals(gammaOf(operator))) yield ["chances.rounds", { after: afterOf(words, lifetime) }];
}

/** The largest ratio of one report, which is below that of all reports together if there is a second layer. */
function gammaOf(operator) {
  const { draw, again, stay } = operator.recipe();
  if (draw === "response" && BigInt(again) !== FULL) return operator.p.over(operator.q);
  if (draw === "unary" && BigInt(stay) !== FULL) return FIRST.minus(operator.q).over(operator.q);
  if (draw === "hash-response") return operator.p.over(FIRST.minus(operator.p));
  return operator.lifetimeGamma();
}

/** How a share of the reports becomes a uniform draw: by a die or a number from 1 to 100 if that is exact. */
function randomShare({ parameters: { random } }, computed, words) {
  const sides = random?.times(SIDES);
  if (sides?.whole) return ["process.die", { faces: words.fill(`process.die.${sides}`) }];
  if (random?.times(100n).whole) return ["process.hundred", { n: words.whole(random.times(100n).floor()) }];
  const [of, n] = counts(words, random ?? computed);
  return ["process.share", { of, n }];
}

function groupProcess(operator, words) {
  const { draw, keep } = operator.recipe();
  if (draw === "unary") return ["process.unary", {}];
  const isCells = draw === "hash-response";
  const [of, n] = counts(words, FIRST.minus(isCells ? operator.p : new Fraction(keep, FULL)));
  return [isCells ? "process.cells" : "process.group", { of, n }];
}

function* ofChoices(operator, words) {
  const after = afterOf(words, operator.lifetimeGamma());
  const recipe = operator.recipe();
  if (recipe.draw === "privset") {
    const [of, p, q] = counts(words, operator.p, operator.q);
    if (recipe.size === 1) yield ["chances.privset.single", { of, p, q, after }];
    else yield ["chances.privset", { of, p, q, after, w: words.whole(recipe.size) }];
    const [all, n] = counts(words, new Fraction(recipe.meet, FULL));
    yield ["process.privset", { m: words.whole(recipe.choose), of: all, n }];
  } else {
    const [of, n] = counts(words, operator.q);
    yield ["chances.one", { of, n, after }];
    yield ["process.one", { d: words.whole(recipe.items), of, n }];
  }
}

function* ofNear({ low, high, width }, operator, words) {
  const { half, near } = operator.recipe();
  const [of, n] = counts(words, new Fraction(near, FULL));
  const away = width.times(half);
  const ends = { low: words.number(low.minus(away)), high: words.number(high.plus(away)) };
  const after = afterOf(words, operator.lifetimeGamma());
  const distance = half ? { distance: words.number(away) } : {};
  yield [`chances.${half ? "near" : "same"}`, { of, n, ...distance, ...ends, after }];
  yield [`process.${half ? "near" : "same"}`, { of, n }];
}

function* ofMean(universe, operator, words) {
  const { half, fine, piecewise, near, keep, values } = operator.recipe();
  const ends = { low: words.number(universe.low), high: words.number(universe.high) };
  const after = afterOf(words, operator.lifetimeGamma());
  if (!piecewise) {
    const [of, n] = counts(words, FIRST.minus(new Fraction(keep, FULL)));
    yield ["chances.ends", { of, n, ...ends, after }];
    yield ["process.ends", { of, n, ...ends }];
    return;
  }
  const [chance, nearChance] = [new Fraction(piecewise, FULL), new Fraction(near, FULL)];
  const wide = 2 * half + 1;
  const inside = FIRST.minus(nearChance).times(wide).over(fine * (values - 1) + wide).plus(nearChance);
  const [of, atEnds, n] = counts(words, FIRST.minus(chance), chance.times(inside));
  const distance = words.number(universe.width.times(Math.ceil(half / fine)));
  yield ["chances.mean", { of, ends: atEnds, n, distance, ...ends, after }];
  yield ["process.mean", { of, ends: atEnds }];
}

function* ofOthers(operator, words) {
  const gamma = operator.lifetimeGamma();
  yield gamma === null ? ["chances.unlimited", {}] : ["chances.limit", { after: afterOf(words, gamma) }];
  yield [operator.basket ? "process.items" : operator.texts ? "process.text" : "process.noise", {}];
}

/** The size of a group of people, 100 or a larger power of ten, in which every count is clear of 0 and of all. */
function people(chances) {
  let size = 100n;
  const isClear = (chance) => {
    const count = chance.times(size).round();
    return count >= 2n && count <= size - 2n;
  };
  while (chances.some((chance) => chance.n > 0n && chance.compare(1n) < 0 && !isClear(chance))) size *= 10n;
  return size;
}

/** The size of a group as text, and the expected number of its people for each probability. */
function counts(words, ...chances) {
  const size = people(chances);
  return [size, ...chances.map((chance) => chance.times(size).round())].map((count) => words.whole(count));
}

/** A limit as a number in 100, rounded up; decimals only if it would be rounded to 100. */
export function atMost(words, chance) {
  for (let decimals = 0; decimals < MOST_DECIMALS; decimals++) {
    const scale = 10n ** BigInt(decimals);
    const limit = chance.times(100n * scale).ceil();
    if (limit >= 100n * scale) continue;
    const [whole, rest] = [limit / scale, String(limit % scale).padStart(decimals, "0")];
    return decimals ? `${whole}${words.texts["number.decimal"]}${rest}` : String(whole);
  }
  return "100";
}

/** The most that anything of probability 50 in 100 can become. */
function afterOf(words, gamma) {
  return gamma === null ? "100" : atMost(words, gamma.over(gamma.plus(1n)));
}
