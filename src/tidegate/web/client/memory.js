/**
 * What a client remembers on its own device: its answers, so that a repeat tells nothing new. Its keys, in every language:
 *
 *   seal                               32 random bytes as hexadecimal digits; ids of reports are made with it
 *   FINGERPRINT/about                  name and version of the collection, and the epsilon of each question
 *   FINGERPRINT/answer/QUESTION/CODE   the permanent answer to a true value (CODE); it never leaves the device
 *   FINGERPRINT/reports                how many reports were made (where each is fresh)
 *
 * A memory has get(key), has(key), set(key, value), keys() and held(work): run `work` while nobody else changes it.
 */

import { Refused } from "./refused.js";

/** As long as the page lasts. */
export class PageMemory {
  #content = new Map();

  get = (key) => this.#content.get(key);
  has = (key) => this.#content.has(key);
  keys = () => [...this.#content.keys()];
  set(key, value) {
    this.#content.set(key, value);
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
