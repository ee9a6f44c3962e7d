/**
 * What a client remembers on its own device: its answers, so that a repeat tells nothing new, and what was used of a
 * lifetime. Its keys, the same in every language:
 *
 *   seal                      32 random bytes as hexadecimal digits; ids of reports are made with it
 *   answer/KEY/CODE           { report: the permanent answer to a true value, state: { HOLDER: "sending" or "sent" } };
 *                             a draft for a holder who is not named there. KEY is `questionKey`, CODE is hexadecimal; it
 *                             is the true value, and never leaves the device
 *   holder/HOLDER             { spent, lifetime }: epsilons as exact texts ("7/3"); null is unlimited
 *   FINGERPRINT/once          the id of the one report that is taken of each person; "" once it was forgotten
 *   FINGERPRINT/reports       how many reports were drawn (where each is fresh)
 *   FINGERPRINT/draft/CODES   a fresh report that was not handed out or confirmed yet
 *
 * HOLDER is who the collection names, or else the collection's own name. Earlier versions kept FINGERPRINT/about and
 * FINGERPRINT/answer/QUESTION/CODE; a client converts them when it meets them.
 *
 * A memory has get(key), has(key), set(key, value), remove(key), keys() and held(work): run `work` while nobody else
 * changes it.
 */

import { fingerprintOf } from "./canonical.js";
import { ZERO, exact, smallest } from "./fraction.js";
import { Refused } from "./refused.js";
import { say } from "./saying.js";

/**
 * The name under which answers to a question are remembered: what is asked and how, whoever words it anew. The
 * collection's name, its version and the order and names of its questions are no part of it.
 */
export function questionKey(holder, { attribute, universe, operator, parameters, plans }) {
  const given = Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, value.toString()]));
  if (plans.length) given.plans = plans.map((plan) => ({ size: plan.size, keep: plan.keep.map(String), insert: `${plan.insert}` }));
  return fingerprintOf({ holder, subject: attribute, universe: plainUniverse(universe), operator, parameters: given });
}

/** The values in one form: numbers as exact texts, however they were written. */
function plainUniverse({ kind, missing, numeric, low, high, width, cuts, values, vocabulary }) {
  if (!numeric) return kind === "items" ? { kind, vocabulary, missing } : { kind, values, missing };
  return { kind, from: `${low}`, to: `${high}`, step: `${width}`, bins: cuts.map(String), missing };
}

/** What one person's answers to a holder have used of their lifetime; null is unlimited. */
export class Account {
  constructor(holder, spent, lifetime) {
    Object.assign(this, { holder, spent, lifetime });
  }

  /** The account in a memory. The first lifetime seen is kept; a later one may be lower, never higher. */
  static read(memory, holder, lifetime) {
    const record = memory.get(`holder/${holder}`) ?? { spent: "0" };
    const known = [lossOf(record.lifetime), lifetime].filter((limit) => limit !== null);
    return new Account(holder, lossOf(record.spent), known.length ? smallest(known) : null);
  }

  /** Its entry in a memory: key and value. */
  record() {
    return [`holder/${this.holder}`, { spent: textOf(this.spent), lifetime: textOf(this.lifetime) }];
  }

  /** Refuse what does not fit into the lifetime. */
  refuse(more, questions) {
    if (this.lifetime === null) return;
    const used = total([this.spent, more]);
    if (used !== null && used.compare(this.lifetime) <= 0) return;
    const asked = questions === 1 ? "This question" : "These questions";
    throw new Refused(
      `${this} ${asked} would need ${amount(more)} more. Nothing was sent.`,
      "Answers that you sent before can be sent again at no cost.",
    );
  }

  toString() {
    return `Your answers to ${this.holder} have used ${amount(this.spent)} of ${amount(this.lifetime)}.`;
  }
}

/** The sum, unlimited (null) where one of them is. */
export const total = (losses) => (losses.includes(null) ? null : losses.reduce((all, loss) => all.plus(loss), ZERO));

/** As it is kept. */
export const textOf = (loss) => (loss === null ? null : loss.toString());

const lossOf = (text) => (text === null || text === undefined ? null : exact(text));

function amount(loss) {
  const said = loss === null ? "unlimited" : say(loss, 4);
  return /^[\d,]+$/.test(said) ? `${said}.0` : said;
}

/** As long as the page lasts. */
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
 * In the browser's own storage, where it outlives the page.
 *
 * Guarantee  A value is read back after it was written, or else refused: what is not kept is not given. Tabs take turns
 *            where the browser has locks (pages served securely or from this very machine). What this page saw before
 *            and is gone now is refused, never started over.
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
      if ([...this.#seen].some((key) => this.#kept(key) === null)) throw unusable("is gone");
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
    `this browser's memory ${why}; nothing was randomized.`,
    "Allow this site to keep data, outside of a private window: an answer that is not kept is not given.",
  );
}
