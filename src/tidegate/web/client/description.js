/**
 * The published description of a collection, which is read and checked before anything else.
 *
 * Guarantee: The result matches the fingerprint. Operators and their integers depend on it alone, and nothing else that a
 * server sends changes them. (`closed` and `clients` are not promises and not part of the fingerprint.)
 */

import { canonical, fingerprintOf } from "./canonical.js";
import { ZERO } from "./fraction.js";
import { largestSum, statedLoss, unitsOf } from "./loss.js";
import { readQuestion } from "./question.js";
import { list, number, oneOf, taken, text, whole, yesOrNo } from "./reading.js";
import { Refused } from "./refused.js";
import { say } from "./text.js";

const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,62}$/;
const REPEATS = ["memoised", "once", "two-layers"];
const HOLDER = /^[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]{1,120}$/u;
const SPAN = /^[1-9][0-9]{0,4} (week|day|hour|minute)s?$/;
const UNLIMITED = ["uniform-noise", "gaussian-noise"]; // some reports rule out some values

/** Read a description; `expected` is the fingerprint that the person has from another source, if any. */
export function readDescription(content, expected = null) {
  const needed = { collection: text, version: whole, repeats: oneOf(REPEATS), questions: asItIs, fingerprint: text };
  const limits = { holder: text, lifetime: number, batch: batchRule, ask: whole, rounds: whole, together: list(list(text)) };
  const given = taken(content, "", needed, { closed: yesOrNo, clients: asItIs, ...limits, poll: readPoll });
  checkFingerprint(content, expected);
  if (given.version < 1) throw new Refused("`version` must be a whole number of at least 1.");
  const collection = {
    name: given.collection,
    version: given.version,
    repeats: given.repeats,
    closed: given.closed ?? false,
    holder: given.holder ?? "",
    lifetime: given.lifetime ?? null,
    batch: given.batch ?? null,
    ask: given.ask ?? null,
    rounds: given.rounds ?? null,
    together: given.together ?? [],
    poll: given.poll ?? null,
    fingerprint: given.fingerprint,
    questions: readQuestions(given),
  };
  checkUnits(collection);
  checkLimits(given, collection);
  return Object.freeze(collection);
}

/** A holder has a printable name; a lifetime must be large enough for one report. */
function checkLimits({ holder, lifetime }, collection) {
  const { name, questions } = collection;
  if (holder !== undefined && !HOLDER.test(holder)) {
    throw new Refused(`The holder of "${name}" must be a name of 1 to 120 printable characters.`);
  }
  if (lifetime === undefined) return;
  const asked = [...questions.values()];
  const unlimited = asked.some(({ operator }) => UNLIMITED.includes(operator));
  const least = largestSum(collection, (word) => statedLoss(questions.get(word)) ?? ZERO);
  if (!unlimited && lifetime.n > 0n && lifetime.compare(least) >= 0) return;
  const needs = unlimited ? "a question has unlimited loss" : `one report needs ${say(least)}`;
  throw new Refused(`The lifetime of "${name}" is epsilon ${say(lifetime)}, but ${needs}.`);
}

/** A person is asked fewer units than there are; groups have at least two questions, and no question is in two. */
function checkUnits({ name, questions, ask, rounds, together, repeats, poll }) {
  const grouped = together.flat();
  const wrong = new Set(grouped).size !== grouped.length || grouped.some((word) => !questions.has(word)) || together.some((names) => names.length < 2);
  if (wrong || (together.length && ask === null)) throw new Refused(`\`together\` of "${name}" is not valid.`);
  if (ask !== null && (ask < 1 || ask >= unitsOf({ questions, together }).length)) throw new Refused(`\`ask\` of "${name}" is not valid.`);
  if (rounds !== null && (rounds < 1 || repeats !== "two-layers")) throw new Refused(`\`rounds\` of "${name}" is not valid.`);
  if (poll && Object.keys(poll.questions).sort().join("\n") !== [...questions.keys()].sort().join("\n")) {
    throw new Refused(`The wording of the poll "${name}" is not that of its questions.`);
  }
}

/** The wording and access of a poll (policy/poll.py). */
function readPoll(value, where) {
  const needed = { languages: list(text), title: asItIs, purpose: asItIs, access: oneOf(["invited", "open"]), closes: text, questions: asItIs };
  const poll = taken(value, where, needed, { invitation_key: text, at_most: whole });
  const { languages } = poll;
  if (!languages.length || new Set(languages).size !== languages.length) throw new Refused(`${where} needs different languages.`);
  const checkTexts = (texts) => {
    const complete = languages.every((language) => typeof texts?.[language] === "string" && texts[language]);
    if (!complete || Object.keys(texts).length !== languages.length) throw new Refused(`${where} needs every text in ${languages.join(", ")}.`);
  };
  [poll.title, poll.purpose].forEach(checkTexts);
  for (const { text: words, options = {} } of Object.values(poll.questions)) [words, ...Object.values(options)].forEach(checkTexts);
  if (Number.isNaN(Date.parse(poll.closes))) throw new Refused(`${where} needs the time at which it closes.`);
  return Object.freeze(poll);
}

/** The promise as it was published; limits and wording only if they are stated. */
function promised({ collection, version, repeats, questions, ...rest }) {
  const stated = ["holder", "lifetime", "batch", "ask", "rounds", "together", "poll"].filter((name) => Object.hasOwn(rest, name)).map((name) => [name, rest[name]]);
  return { collection, version, repeats, questions, ...Object.fromEntries(stated) };
}

function checkFingerprint(content, expected) {
  const { collection, fingerprint } = content;
  if (fingerprintOf(promised(content)) !== fingerprint) {
    throw new Refused(
      `The description of "${collection}" was changed in transit: it does not match its fingerprint.`,
      "Get it again from its holder. Nothing was sent.",
      { key: "changed", values: {} },
    );
  }
  if (expected !== null && expected !== fingerprint) {
    throw new Refused(
      `The collection "${collection}" does not have the fingerprint that you were given.`,
      "Ask its holder which fingerprint is right. Nothing was sent.",
      { key: "fingerprint", values: {} },
    );
  }
}

/** Read the questions by name, in the order of the description: a Map. */
function readQuestions({ collection, repeats, questions }) {
  const words = Object.keys(taken(questions, "questions", {}, free(questions)));
  if (!words.length) throw new Refused(`The collection "${collection}" has no questions.`);
  if (![collection, ...words].every((word) => NAME.test(word))) {
    throw new Refused("The name of a collection or question must be a letter followed by letters, digits, or _ - (at most 63 characters).");
  }
  const read = new Map(words.map((word) => [word, readQuestion(questions[word], `questions.${word}`)]));
  checkTogether(questions, read, repeats);
  return read;
}

/** When received reports are counted: "close", or { at_least, every } as in policy/batches.py. */
function batchRule(value, where) {
  if (value === "close") return value;
  const { at_least: least, every } = taken(value, where, { at_least: whole, every: text });
  if (least < 10 || least > 1_000_000) throw new Refused(`${where}: \`at_least\` must be a whole number from 10 to 1,000,000.`);
  if (!SPAN.test(every)) throw new Refused(`${where}: \`every\` must be a time such as "12 hours" or "1 day".`);
  return value;
}

const asItIs = (value) => value;
const free = (table) => Object.fromEntries(Object.keys(Object(table)).map((key) => [key, asItIs]));

function checkTogether(questions, read, repeats) {
  const universes = new Map();
  for (const [word, question] of read) {
    if ((repeats === "two-layers") !== ("each" in question.parameters)) {
      throw new Refused(`\`each\` and repeats = "two-layers" must be used together; question "${word}" has only one of them.`);
    }
    const universe = canonical(questions[word].universe);
    if ((universes.get(question.attribute) ?? universe) !== universe) {
      throw new Refused(`"${question.attribute}" is described in two ways.`);
    }
    universes.set(question.attribute, universe);
  }
}
