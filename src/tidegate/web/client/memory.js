/**
 * The memory of a client on its own device: its answers, so that a repeat reveals nothing new, and the used part of a
 * lifetime. Its keys are the same in every language:
 *
 *   seal                      32 random bytes as hexadecimal digits, the key of report ids
 *   answer/KEY/CODE           { report: the permanent answer to a true value, state: { HOLDER: "sending" or "sent" } };
 *                             a draft for any other holder. KEY is `questionKey`, CODE is hexadecimal; it is the true
 *                             value and never leaves the device
 *   seed/KEY                  the seed of this device, if the operator has one; CODE is then its `memoryCode`
 *   holder/HOLDER             { spent, lifetime }: epsilons as exact texts ("7/3"); null is unlimited
 *   FINGERPRINT/once          the id of the only report that each person can send; "" after it was deleted
 *   FINGERPRINT/reports       the number of reports drawn (if each is fresh)
 *   FINGERPRINT/draft/CODES   a fresh report that was not returned or confirmed yet
 *
 * HOLDER is the holder that the collection names, or else the collection's own name. Earlier versions stored
 * FINGERPRINT/about and FINGERPRINT/answer/QUESTION/CODE; a client converts them.
 *
 * A memory has get(key), has(key), set(key, value), remove(key), keys() and held(work): run `work` under a lock.
 */

import { fingerprintOf } from "./canonical.js";
import { ZERO, exact, smallest } from "./fraction.js";
import { Refused } from "./refused.js";
import { say } from "./text.js";

/**
 * The name under which answers to a question are stored: its attribute and operator. The collection's name, its version,
 * and the order and names of its questions are not part of it.
 */
export function questionKey(holder, { attribute, universe, operator, parameters, plans }) {
  const given = Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, value.toString()]));
  if (plans.length) given.plans = plans.map((plan) => ({ size: plan.size, keep: plan.keep.map(String), insert: `${plan.insert}` }));
  return fingerprintOf({ holder, subject: attribute, universe: plainUniverse(universe), operator, parameters: given });
}

/** The values in one format: numbers as exact text, however they were written. */
function plainUniverse({ content, kind, missing, outside = "clamp", low, high, width, cuts }) {
  if (content) return content; // dates, times and lists have one way to write them
  const setting = outside === "clamp" ? {} : { outside };
  return { kind, from: `${low}`, to: `${high}`, step: `${width}`, bins: cuts.map(String), missing, ...setting };
}

/** The part of a lifetime that one person's answers to a holder have used; null is unlimited. */
export class Account {
  constructor(holder, spent, lifetime) {
    Object.assign(this, { holder, spent, lifetime });
  }

  /** Read the account from a memory. The first lifetime is stored; a later one can be lower, never higher. */
  static read(memory, holder, lifetime) {
    const record = memory.get(`holder/${holder}`) ?? { spent: "0" };
    const known = [lossOf(record.lifetime), lifetime].filter((limit) => limit !== null);
    return new Account(holder, lossOf(record.spent), known.length ? smallest(known) : null);
  }

  /** Return its entry in a memory: key and value. */
  record() {
    return [`holder/${this.holder}`, { spent: textOf(this.spent), lifetime: textOf(this.lifetime) }];
  }

  /** Refuse answers that exceed the lifetime. */
  refuse(more, questions) {
    if (this.lifetime === null) return;
    const used = total([this.spent, more]);
    if (used !== null && used.compare(this.lifetime) <= 0) return;
    const asked = questions === 1 ? "This question" : "These questions";
    throw new Refused(
      `${this} ${asked} would need ${amount(more)} more. Nothing was sent.`,
      "Answers that you sent before can be sent again at no cost.",
      { key: "lifetime", values: { holder: this.holder, spent: this.spent, lifetime: this.lifetime, more } },
    );
  }

  toString() {
    return `Your answers to ${this.holder} have used ${amount(this.spent)} of ${amount(this.lifetime)}.`;
  }
}

/** The sum, which is unlimited (null) if one part is. */
export const total = (losses) => (losses.includes(null) ? null : losses.reduce((all, loss) => all.plus(loss), ZERO));

/** A loss as it is stored. */
export const textOf = (loss) => (loss === null ? null : loss.toString());

const lossOf = (text) => (text === null || text === undefined ? null : exact(text));

function amount(loss) {
  const said = loss === null ? "unlimited" : say(loss, 4);
  return /^[\d,]+$/.test(said) ? `${said}.0` : said;
}

/** A memory that lasts as long as the page. */
export class PageMemory {
  #content = new Map();

  get = (key) => this.#content.get(key);
  has = (key) => this.#content.has(key);
  keys = () => [...this.#content.keys()];
  set(key, value) {
    this.#content.set(key, value);
  }
  remove(key) {
    this.#content.delete(key);
  }
  async held(work) {
    return work();
  }
}

const MARK = "tidegate:";

/**
 * A memory in the browser's storage, which outlives the page.
 *
 * Guarantee: A value is read back after it was written; otherwise it is refused, so an answer that cannot be stored is not
 * used. Tabs take turns if the browser has locks (pages with https or from the same machine). If a value that this page
 * has seen disappears, the page refuses to continue and never starts over.
 */
export class StoredMemory {
  #storage;
  #seen = new Set();

  constructor(storage = null) {
    this.#storage = storage ?? ownStorage();
  }

  get(key) {
    const text = this.#kept(key);
    if (text === null) return undefined;
    this.#seen.add(key);
    try {
      return JSON.parse(text);
    } catch {
      throw unusable("cannot be read");
    }
  }

  has(key) {
    return this.get(key) !== undefined;
  }

  keys() {
    const all = Array.from({ length: this.#storage.length }, (_, place) => this.#storage.key(place));
    return all.filter((key) => key.startsWith(MARK)).map((key) => key.slice(MARK.length));
  }

  set(key, value) {
    const text = JSON.stringify(value);
    try {
      this.#storage.setItem(MARK + key, text);
    } catch {
      throw unusable("cannot be written");
    }
    if (this.#kept(key) !== text) throw unusable("cannot be written");
    this.#seen.add(key);
  }

  remove(key) {
    this.#seen.delete(key);
    try {
      this.#storage.removeItem(MARK + key);
    } catch {
      throw unusable("cannot be written");
    }
    if (this.#kept(key) !== null) throw unusable("cannot be written");
  }

  async held(work) {
    const story = () => {
      if ([...this.#seen].some((key) => this.#kept(key) === null)) throw unusable("no longer exists");
      return work();
    };
    return globalThis.navigator?.locks ? navigator.locks.request(`${MARK}memory`, story) : story();
  }

  #kept(key) {
    try {
      return this.#storage.getItem(MARK + key);
    } catch {
      throw unusable("cannot be read");
    }
  }
}

function ownStorage() {
  try {
    return globalThis.localStorage;
  } catch {
    throw unusable("cannot be read");
  }
}

function unusable(why) {
  return new Refused(
    `The memory of this browser ${why}. Nothing was randomized.`,
    "Allow this site to store data, and do not use a private window. An answer that cannot be stored is not sent.",
    { key: "memory", values: {} },
  );
}
