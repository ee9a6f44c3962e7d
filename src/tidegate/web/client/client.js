/**
 * The client: randomizes in the page and hands out reports only.
 *
 *   const client = new Client(description, { fingerprint: "cf7c4c..." });   what the holder published, and its fingerprint
 *   await client.randomize({ age: 34, town: "L1" });                        the report; the true values stay here
 *   await client.tell({ age: 34, town: "L1" });                             what it gives away, in words, before it is sent
 *   client.told(report);                                                    the same of a report that was made already
 *   await client.given();                                                   what all answers so far give away
 *
 * The same bytes give the same report as in the Python client, byte for byte.
 */

import { readAloud } from "./aloud.js";
import { SystemBytes } from "./bits.js";
import { codeOf } from "./coding.js";
import { readDescription } from "./description.js";
import { bitLength } from "./fraction.js";
import { StoredMemory } from "./memory.js";
import { operatorFor } from "./operators/index.js";
import { Refused } from "./refused.js";
import { identityOf, makeReport } from "./report.js";
import { commas, say } from "./saying.js";
import { hex } from "./sha256.js";

/** What one client has given to one question: how many different true values were answered, and the loss of all. */
export class Given {
  constructor(question, answered, epsilon) {
    Object.assign(this, { question, answered, epsilon });
  }

  toString() {
    const values = `${commas(this.answered)} different value${this.answered === 1 ? "" : "s"}`;
    const loss = this.epsilon === Infinity ? "unlimited" : `at most ${say(this.epsilon)}`;
    return `${this.question}: ${values} answered so far; together they give away epsilon ${loss}.`;
  }
}

/**
 * One person's side of a collection.
 *
 * Guarantee  The same true value gives the same permanent answer for as long as the memory lasts, so repeats tell nothing
 *            new; it is in the memory before a report of it exists. With repeats = "once" a second, different report is
 *            refused. Only `randomize`'s value may leave.
 */
export class Client {
  #memory;
  #source;

  constructor(description, { memory = new StoredMemory(), fingerprint = null, source = new SystemBytes() } = {}) {
    this.collection = readDescription(description, fingerprint);
    this.operators = new Map([...this.collection.questions].map(([name, question]) => [name, operatorFor(question)]));
    this.#memory = memory;
    this.#source = source;
  }

  /** The report of true answers, to be sent. The same answers give the same report (but for a fresh layer). */
  async randomize(answers) {
    const codes = this.#codes(answers);
    return this.#memory.held(() => this.#report(codes));
  }

  /** What would be sent and what its holder can conclude, question by question, in words. */
  async tell(answers) {
    return this.told(await this.randomize(answers));
  }

  /** As `tell`, of a report that `randomize` made. */
  told(report) {
    const aloud = (name, question) => readAloud(question, this.operators.get(name), report.answers[name]);
    return [...this.collection.questions].map(([name, question]) => `${name}: ${aloud(name, question)}`);
  }

  /** What all answers so far give away together, over all versions of this collection. */
  async given() {
    return this.#memory.held(() => [...this.collection.questions.keys()].map((name) => this.#givenTo(name)));
  }

  #report(codes) {
    const { collection } = this;
    if (collection.repeats === "once") this.#refuseSecond(codes);
    this.#introduce();
    const kept = codes.map(([name, code]) => [name, this.#permanent(name, code)]);
    if (collection.repeats !== "two-layers") {
      return makeReport(collection, kept, this.#identity(...codes.map(([, code]) => code)));
    }
    const count = (this.#memory.get(this.#key("reports")) ?? 0) + 1;
    this.#memory.set(this.#key("reports"), count);
    const fresh = kept.map(([name, answer]) => [name, this.operators.get(name).repeated(answer, this.#source)]);
    return makeReport(collection, fresh, this.#identity("report", count));
  }

  /** Question and code of every true answer, in the order of the description. */
  #codes(answers) {
    const { questions } = this.collection;
    const asked = [...questions.keys()];
    const strange = Object.keys(answers).find((name) => !questions.has(name));
    if (strange !== undefined) throw new Refused(`"${strange}" is not asked here.`, `Known: ${asked.join(", ")}.`);
    const left = asked.filter((name) => !Object.hasOwn(answers, name));
    if (left.length) {
      throw new Refused(
        `not answered: ${left.join(", ")}. Nothing was sent.`,
        "All are needed: which questions a person leaves out would tell something.",
      );
    }
    return asked.map((name) => [name, codeOf(questions.get(name), answers[name])]);
  }

  /** Refuse other true values after the first. (One that was interrupted on the way can be finished.) */
  #refuseSecond(codes) {
    const own = new Set(codes.map(([name, code]) => this.#key("answer", name, code)));
    const start = this.#key("answer", "");
    if (this.#memory.keys().some((key) => key.startsWith(start) && !own.has(key))) {
      throw new Refused(
        `"${this.collection.name}" takes one report of each person, and yours was made already.`,
        "The same answers give that report again; others are not taken.",
      );
    }
  }

  /** Remember which collection this is and what its answers cost, before the first of them. */
  #introduce() {
    if (this.#memory.has(this.#key("about"))) return;
    const losses = [...this.operators].map(([name, operator]) => [name, logarithm(operator.lifetimeGamma())]);
    const { name: collection, version } = this.collection;
    this.#memory.set(this.#key("about"), { collection, version, epsilons: Object.fromEntries(losses) });
  }

  /** The answer to a true value: remembered, or drawn and remembered before it is used. */
  #permanent(name, code) {
    const key = this.#key("answer", name, code);
    if (!this.#memory.has(key)) this.#memory.set(key, this.operators.get(name).sample(code, this.#source));
    return this.#memory.get(key);
  }

  #identity(...parts) {
    if (!this.#memory.has("seal")) this.#memory.set("seal", hex(this.#source.take(32)));
    return identityOf(this.#memory.get("seal"), this.collection.fingerprint, ...parts);
  }

  #givenTo(question) {
    let [answered, epsilon] = [0, 0];
    const keys = this.#memory.keys();
    for (const key of keys.filter((one) => one.endsWith("/about"))) {
      const about = this.#memory.get(key);
      if (about.collection !== this.collection.name || !Object.hasOwn(about.epsilons, question)) continue;
      const start = `${key.slice(0, -"about".length)}answer/${question}/`;
      const many = keys.filter((other) => other.startsWith(start)).length;
      const one = about.epsilons[question] ?? Infinity; // null in the memory: unlimited
      [answered, epsilon] = [answered + many, epsilon + (many ? many * one : 0)];
    }
    return new Given(question, answered, epsilon);
  }

  #key(...parts) {
    return [this.collection.fingerprint, ...parts].join("/");
  }
}

/** Of any fraction above 0, also one that no double can hold; null where there is none. */
function logarithm(ratio) {
  if (ratio === null) return null;
  const near = ratio.toNumber();
  return near < 1e300 ? Math.log(near) : logOfWhole(ratio.n) - logOfWhole(ratio.d);
}

function logOfWhole(whole) {
  const shift = Math.max(0, bitLength(whole) - 60);
  return Math.log(Number(whole >> BigInt(shift))) + shift * Math.LN2;
}
