/** One question of a collection: an attribute, its universe, and its operator. */

import { Fraction, sum } from "./fraction.js";
import { list, number, taken, text, whole } from "./reading.js";
import { Refused } from "./refused.js";
import { commas, say } from "./text.js";
import { readUniverse, stepOf } from "./universe.js";

const SINGLE = {
  "uniform-noise": { ordered: true, one: ["privacy", "half_width"] },
  "gaussian-noise": { ordered: true, one: ["privacy", "sigma"] },
  "laplace-noise": { ordered: true, one: ["epsilon"] },
  "square-wave": { ordered: true, one: ["epsilon"] },
  hybrid: { ordered: true, one: ["epsilon"], onlyMean: true },
  "randomized-response": { one: ["epsilon", "random"], fresh: true },
  unary: { one: ["epsilon"], fresh: true },
  subset: { one: ["epsilon"] },
  "projective-geometry": { one: ["epsilon"], most: 2 ** 20 },
  "hash-response": { one: ["epsilon"], fresh: true },
};
const SETS = {
  "select-a-size": { needed: [], allowed: ["fixed"], plans: true },
  "cut-and-paste": { needed: ["cutoff", "rho", "largest"], allowed: ["fixed"] },
  mask: { needed: ["keep"], allowed: ["insert", "largest"] },
  privset: { needed: ["epsilon", "choose"], allowed: [] },
  "one-option": { needed: ["epsilon"], allowed: [] },
};
const CHANCES = ["keep", "insert", "rho"];
const WHOLES = ["cutoff", "largest", "fixed", "choose", "hashed"];
const PARAMETERS = ["epsilon", "random", "privacy", "half_width", "sigma", "each", ...CHANCES, ...WHOLES];
const LARGEST_EPSILON = 20n;
const LARGEST_SIZE = 65_536;
const LARGEST_BASKET = 1_000;

/** Read a question; parameters that its operator does not have are refused. */
export function readQuestion(content, where) {
  const needed = { attribute: text, operator: text, universe: readUniverse };
  const allowed = { plans: list(readPlan), ...Object.fromEntries(PARAMETERS.map((name) => [name, number])) };
  const { attribute, operator, universe, plans = [], ...parameters } = taken(content, where, needed, allowed);
  const inOrder = plans.toSorted((one, other) => one.size - other.size);
  const [size, step] = [universe.size, stepOf(universe)];
  const question = { attribute, operator, universe, parameters, plans: inOrder, size, step };
  if (Object.hasOwn(SETS, operator) || universe.kind === "items") checkSet(question);
  else if (operator === "prefix" || universe.kind === "text") checkText(question);
  else checkSingle(question);
  return Object.freeze(question);
}

function readPlan(content, where) {
  const plan = taken(content, where, { size: whole, keep: list(number), insert: number });
  const { size, keep, insert } = plan;
  const good = keep.length === size + 1 && keep.every((chance) => chance.n >= 0n) && sum(keep).equals(1n);
  if (good && isChance(insert)) return plan;
  throw new Refused(`The plan for ${size} items needs ${size + 1} probabilities that add up to 1, and \`insert\` from 0 to 1.`);
}

const isChance = (value) => value.n >= 0n && value.compare(1n) <= 0;

function checkText({ attribute, operator, universe, parameters, plans }) {
  if (operator !== "prefix") throw new Refused(`"${attribute}" is text, which is never collected by ${operator}.`);
  if (universe.kind !== "text") throw new Refused(`prefix needs text without a list of values, and "${attribute}" is not.`);
  const strange = Object.keys(parameters).find((name) => !["epsilon", "hashed"].includes(name));
  if (strange || plans.length) throw new Refused(`prefix ${strange ? `has no parameter ${strange}` : "does not accept plans"}.`);
  if (!parameters.epsilon) throw new Refused("prefix needs one parameter.");
  checkParameter(operator, "epsilon", parameters.epsilon, 2, null);
  const { hashed } = parameters;
  if (hashed && !(hashed.whole && isChance(hashed))) throw new Refused(`hashed of prefix must be a whole number from 0 to 1; it is ${say(hashed)}.`);
}

function checkSingle({ attribute, operator, universe, parameters, plans, size, step }) {
  const known = Object.hasOwn(SINGLE, operator) ? SINGLE[operator] : null;
  if (!known) throw new Refused(`Unknown operator: "${operator}".`);
  if (known.ordered && !universe.numeric) {
    throw new Refused(`${operator} needs numbers; "${attribute}" is a category, whose values have no order.`);
  }
  if (known.onlyMean && (universe.span || universe.starts)) {
    throw new Refused(`${operator} estimates a mean; "${attribute}" has bins or is a date or time.`);
  }
  const most = known.most ?? LARGEST_SIZE;
  if (size < 2 || size > most) {
    const needs = `needs from 2 to ${commas(most)} possible values`;
    throw new Refused(`A question by ${operator} ${needs}; "${attribute}" has ${commas(size)}.`);
  }
  const strange = Object.keys(parameters).find((name) => !known.one.includes(name) && !(known.fresh && name === "each"));
  if (strange || plans.length) throw new Refused(`${operator} ${strange ? `has no parameter ${strange}` : "does not accept plans"}.`);
  if (known.one.filter((name) => name in parameters).length !== 1) throw new Refused(`${operator} needs one parameter.`);
  for (const [name, value] of Object.entries(parameters)) checkParameter(operator, name, value, size, step);
  if (parameters.each && !parameters.epsilon) throw new Refused("`each` needs `epsilon`, which must be larger.");
  if (parameters.each && parameters.each.compare(parameters.epsilon) >= 0) {
    throw new Refused(`each (${say(parameters.each)}) must be below epsilon (${say(parameters.epsilon)}).`);
  }
}

/** Noise of less than a quarter step leaves values unchanged; noise of 100 ranges leaves no information. */
function checkParameter(operator, name, value, size, step) {
  if (name === "random") return checkRandom(operator, value);
  const units = name === "half_width" || name === "sigma";
  const least = units ? step.over(4n) : new Fraction(1n, 1000n);
  const most = units ? step.times(100n * BigInt(size)) : new Fraction(name === "privacy" ? 100n : LARGEST_EPSILON);
  if (value.compare(least) >= 0 && value.compare(most) <= 0) return;
  throw new Refused(
    `${name} of ${operator} must be from ${say(least)} to ${say(most)}; it is ${say(value)}.`,
    "Outside these bounds, a report hides nothing or contains no information.",
  );
}

function checkRandom(operator, value) {
  const [least, most] = [new Fraction(1n, 1000n), new Fraction(999n, 1000n)];
  if (value.compare(least) >= 0 && value.compare(most) <= 0) return;
  throw new Refused(`random of ${operator} must be a probability from ${say(least)} to ${say(most)}; it is ${say(value)}.`);
}

function checkSet({ attribute, operator, universe, parameters, plans, size }) {
  if (!Object.hasOwn(SETS, operator) || universe.kind !== "items") {
    const wrong = universe.kind === "items" ? "a set of items needs" : "only a set of items has";
    throw new Refused(`"${attribute}" by ${operator}: ${wrong} one of ${Object.keys(SETS).join(", ")}.`);
  }
  const known = SETS[operator];
  const strange = Object.keys(parameters).find((name) => ![...known.needed, ...known.allowed].includes(name));
  const missing = known.needed.find((name) => !(name in parameters));
  const asked = `${operator} of "${attribute}"`;
  if (strange || missing) throw new Refused(`${asked} ${strange ? `has no parameter ${strange}` : `needs ${missing}`}.`);
  if (plans.length > 0 !== Boolean(known.plans)) throw new Refused(`${asked} ${known.plans ? "needs" : "does not accept"} plans.`);
  for (const [name, value] of Object.entries(parameters)) checkSetNumber(operator, name, value, size);
  checkSizes(parameters, plans, size);
}

function checkSetNumber(operator, name, value, items) {
  if (CHANCES.includes(name) && !isChance(value)) {
    throw new Refused(`${name} of ${operator} must be a probability from 0 to 1; it is ${say(value)}.`);
  }
  const [least, most] = [name === "choose" ? 1 : 0, Math.min(items, LARGEST_BASKET)];
  if (WHOLES.includes(name) && !(value.whole && value.compare(least) >= 0 && value.compare(most) <= 0)) {
    throw new Refused(`${name} of ${operator} must be a whole number from ${least} to ${commas(most)}; it is ${say(value)}.`);
  }
  if (name === "epsilon") checkParameter(operator, name, value, items, null);
}

function checkSizes({ largest, fixed }, plans, items) {
  const sizes = plans.map((plan) => plan.size);
  if (new Set(sizes).size !== sizes.length || sizes.some((size) => size > items)) {
    throw new Refused(`Plans must have different sizes, of at most ${commas(items)} items.`);
  }
  const planned = (size) => (sizes.length ? sizes.includes(size) : size <= Number(largest?.floor() ?? items));
  if (fixed && !planned(Number(fixed.floor()))) {
    throw new Refused(`\`fixed\` is ${say(fixed)} items, but no plan has that size.`);
  }
}
