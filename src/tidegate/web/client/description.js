/**
 * The published description of a collection, read and checked before anything else is done with it.
 *
 * Guarantee  What is read is what the fingerprint names: operators and their whole numbers follow from it alone, and
 *            nothing that a server says beside it changes them. (`closed` and `clients` are no promise, and no part of it.)
 */

import { canonical, fingerprintOf } from "./canonical.js";
import { readQuestion } from "./question.js";
import { oneOf, taken, text, whole, yesOrNo } from "./reading.js";
import { Refused } from "./refused.js";

const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,62}$/;
const REPEATS = ["memoised", "once", "two-layers"];

/** The collection of a description; `expected` is the fingerprint that the person has from elsewhere, if any. */
export function readDescription(content, expected = null) {
  const needed = { collection: text, version: whole, repeats: oneOf(REPEATS), questions: asItIs, fingerprint: text };
  const given = taken(content, "", needed, { closed: yesOrNo, clients: asItIs });
  checkFingerprint(given, expected);
  if (given.version < 1) throw new Refused("version is a whole number of 1 or more.");
  const collection = {
    name: given.collection,
    version: given.version,
    repeats: given.repeats,
    closed: given.closed ?? false,
    fingerprint: given.fingerprint,
    questions: readQuestions(given),
  };
  return Object.freeze(collection);
}

function checkFingerprint({ collection, version, repeats, questions, fingerprint }, expected) {
  if (fingerprintOf({ collection, version, repeats, questions }) !== fingerprint) {
    throw new Refused(
      `the description of "${collection}" was changed on its way: it is not the one that its fingerprint names.`,
      "Get it again from its holder; nothing was sent.",
    );
  }
  if (expected !== null && expected !== fingerprint) {
    throw new Refused(
      `the collection "${collection}" is not the one with the fingerprint you were given.`,
      "Ask its holder which one is right; nothing was sent.",
    );
  }
}

/** By name, in the order of the description: a Map. */
function readQuestions({ collection, repeats, questions }) {
  const words = Object.keys(taken(questions, "questions", {}, free(questions)));
  if (!words.length) throw new Refused(`the collection "${collection}" asks nothing.`);
  if (![collection, ...words].every((word) => NAME.test(word))) {
    throw new Refused("collections and questions are named by a letter followed by letters, digits, or _ - (63 at most).");
  }
  const read = new Map(words.map((word) => [word, readQuestion(questions[word], `questions.${word}`)]));
  checkTogether(questions, read, repeats);
  return read;
}

const asItIs = (value) => value;
const free = (table) => Object.fromEntries(Object.keys(Object(table)).map((key) => [key, asItIs]));

function checkTogether(questions, read, repeats) {
  const universes = new Map();
  for (const [word, question] of read) {
    if ((repeats === "two-layers") !== ("each" in question.parameters)) {
      throw new Refused(`each and repeats = "two-layers" go together; question "${word}" has one of them only.`);
    }
    const universe = canonical(questions[word].universe);
    if ((universes.get(question.attribute) ?? universe) !== universe) {
      throw new Refused(`"${question.attribute}" is described in two ways.`);
    }
    universes.set(question.attribute, universe);
  }
}
