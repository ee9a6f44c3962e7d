/**
 * The client: randomizes in the page and returns reports only.
 *
 *   const client = new Client(description, { fingerprint: "cf7c4c..." });   the published description and its fingerprint
 *   await client.draft({ age: 34, town: "L1" });                            the report to be sent; free
 *   await client.start({ age: 34, town: "L1" });                            the same report, charged: it can be sent now
 *   await client.confirm({ age: 34, town: "L1" });                          it was received
 *   await client.randomize({ age: 34, town: "L1" });                        draft and start in one step
 *   await client.tell({ age: 34, town: "L1" });                             a description of what it reveals; free
 *   client.told(report);                                                    the same for an existing report
 *   await client.given(); await client.account();                           what all answers so far have revealed
 *   await client.forget();                                                  delete answers and drafts, keep the used loss
 *   await client.forgetEverything();                                        delete the whole memory: limits start over
 *
 * An answer is a draft, then sending, then sent. It is drawn once for each true value and never changes. Its cost is
 * charged when it becomes sending, before it is sent: if the response is lost, the report may still have arrived.
 *
 * The same random bytes give the same report and the same memory as in the Python client, byte for byte.
 */

import { readAloud } from "./explain.js";
import { SystemBytes } from "./bits.js";
import { codeOf } from "./coding.js";
import { fingerprintOf } from "./canonical.js";
import { readDescription } from "./description.js";
import { Fraction } from "./fraction.js";
import { firstOfShuffled } from "./operators/baskets.js";
import { largestSum, roundedLoss, statedLoss, unitsOf } from "./loss.js";
import { Account, StoredMemory, questionKey, textOf, total } from "./memory.js";
import { operatorFor } from "./operators/index.js";
import { Refused } from "./refused.js";
import { identityOf, makeReport } from "./report.js";
import { commas, say } from "./text.js";
import { hex } from "./sha256.js";

/** What one client has sent for one question: the number of different true values, and their total loss. */
export class Given {
  constructor(question, answered, epsilon) {
    Object.assign(this, { question, answered, epsilon });
  }

  toString() {
    const values = `${commas(this.answered)} different value${this.answered === 1 ? "" : "s"}`;
    const loss = this.epsilon === Infinity ? "unlimited" : `at most ${say(this.epsilon)}`;
    return `${this.question}: ${values} answered so far; together they reveal epsilon ${loss}.`;
  }
}

/**
 * One person's side of a collection.
 *
 * Guarantee: The same true value gives the same permanent answer for as long as the memory lasts, in every version that
 * asks the same question, so repeats reveal nothing new. The answer is in the memory before a report of it exists. All
 * reports to a holder together use no more than the lifetime. With repeats = "once", a second, different report is
 * refused. Only the results of `start` and `randomize` can be sent.
 */
export class Client {
  #memory;
  #source;
  #keys;
  #losses = null;

  constructor(description, { memory = new StoredMemory(), fingerprint = null, source = new SystemBytes() } = {}) {
    this.collection = readDescription(description, fingerprint);
    this.holder = this.collection.holder || this.collection.name;
    this.operators = new Map([...this.collection.questions].map(([name, question]) => [name, operatorFor(question)]));
    const keyOf = ([name, question]) => [name, questionKey(this.collection.holder, question)];
    this.#keys = new Map([...this.collection.questions].map(keyOf));
    this.#memory = memory;
    this.#source = source;
  }

  /** Return the report to be sent. It is drawn once and stored; nothing is charged and nothing is locked. */
  async draft(answers) {
    return this.#memory.held(() => this.#drawn(this.#codes(answers)));
  }

  /**
   * Charge the report of true answers and return it: it can be sent now. Until it is confirmed, the result is the same.
   *
   * `invitation` is { nonce, signature }, which an invited poll requires.
   */
  async start(answers, invitation = null) {
    this.#refuseUninvited(invitation);
    return this.#memory.held(() => withInvitation(this.#started(this.#codes(answers)), invitation));
  }

  /**
   * Return the questions of this person, in the order of the collection: all, or those that the device drew once.
   *
   * They are drawn before an answer exists, stored, and the same in every version that asks the same questions.
   */
  async chosen() {
    return this.#memory.held(() => this.#asked());
  }

  /** Record that the report of `start` was received. */
  async confirm(answers) {
    return this.#memory.held(() => {
      const codes = this.#codes(answers);
      for (const [name, code] of codes) {
        const record = this.#record(name, code);
        if (this.#isSent(record)) this.#memory.set(this.#place(name, code), this.#inState(record, "sent"));
      }
      this.#memory.remove(this.#draftKey(codes));
    });
  }

  /** Charge and return the report of true answers. The same answers give the same report (except for a fresh layer). */
  async randomize(answers, invitation = null) {
    this.#refuseUninvited(invitation);
    return this.#memory.held(() => {
      const codes = this.#codes(answers);
      const report = this.#started(codes);
      this.#memory.remove(this.#draftKey(codes));
      return withInvitation(report, invitation);
    });
  }

  /** Describe the report and what its holder can conclude, question by question. Nothing is charged. */
  async tell(answers) {
    return this.told(await this.draft(answers));
  }

  /** The same as `tell`, for an existing report. */
  told(report) {
    const aloud = (name, question) => readAloud(question, this.operators.get(name), report.answers[name]);
    const answered = [...this.collection.questions].filter(([name]) => Object.hasOwn(report.answers, name));
    return answered.map(([name, question]) => `${name}: ${aloud(name, question)}`);
  }

  /** Return what all answers sent so far reveal, question by question, over all versions with the same question. */
  async given() {
    return this.#memory.held(() => {
      this.#convert();
      return [...this.collection.questions.keys()].map((name) => this.#givenTo(name));
    });
  }

  /** Return what all answers to this holder have used of the lifetime, over all collections. */
  async account() {
    return this.#memory.held(() => {
      this.#convert();
      return this.#account();
    });
  }

  /** Return whether the memory contains answers or drafts of any collection. */
  remembers() {
    return this.#memory.keys().some((key) => key.startsWith("answer/"));
  }

  /** Delete all answers and drafts from the memory. The used part of each lifetime stays used, and `once` stays once. */
  async forget() {
    return this.#memory.held(() => {
      this.#convert();
      for (const key of this.#memory.keys()) {
        if (key.endsWith("/once")) this.#memory.set(key, "");
        else if (!LASTING.some((start) => key.startsWith(start))) this.#memory.remove(key);
      }
    });
  }

  /** Delete the whole memory. Lifetimes, `once` and drawn questions start over, so that new answers reveal more. */
  async forgetEverything() {
    return this.#memory.held(() => this.#memory.keys().forEach((key) => this.#memory.remove(key)));
  }

  #drawn(codes) {
    const { collection } = this;
    this.#meet();
    this.#refuse(codes);
    const answers = codes.map(([name, code]) => [name, this.#permanent(name, code)]);
    if (collection.repeats !== "two-layers") return makeReport(collection, answers, this.#identity(...valuesOf(codes)));
    const place = this.#draftKey(codes);
    if (!this.#memory.has(place)) this.#memory.set(place, this.#fresh(answers));
    return this.#memory.get(place);
  }

  #fresh(answers) {
    const count = (this.#memory.get(this.#key("reports")) ?? 0) + 1;
    this.#memory.set(this.#key("reports"), count);
    const fresh = answers.map(([name, answer]) => [name, this.operators.get(name).repeated(answer, this.#source)]);
    return makeReport(this.collection, fresh, this.#identity("report", count));
  }

  /** Charge and lock the answers that were not sent before, the charge first, and only then return the report. */
  #started(codes) {
    const report = this.#drawn(codes);
    const unpaid = this.#unpaid(codes);
    const { holder, spent, lifetime } = this.#account();
    const used = total([spent, ...unpaid.map(([name]) => this.#lossOf(name))]);
    this.#memory.set(...new Account(holder, used, lifetime).record());
    if (this.collection.repeats === "once") this.#memory.set(this.#key("once"), report.id);
    for (const [name, code] of unpaid) {
      this.#memory.set(this.#place(name, code), this.#inState(this.#record(name, code), "sending"));
    }
    return report;
  }

  /** Return the question and code of every true answer, in the order of the description. */
  #codes(answers) {
    const { questions } = this.collection;
    const asked = [...questions.keys()];
    const strange = Object.keys(answers).find((name) => !questions.has(name));
    if (strange !== undefined) throw new Refused(`"${strange}" is not a question of this collection.`, `Known: ${asked.join(", ")}.`);
    const drawn = this.#asked();
    const left = drawn.filter((name) => !Object.hasOwn(answers, name));
    if (left.length) {
      throw new Refused(
        `Questions without an answer: ${left.join(", ")}. Nothing was sent.`,
        "Answer all questions: an omitted question would reveal something.",
      );
    }
    return drawn.map((name) => [name, codeOf(questions.get(name), answers[name])]);
  }

  #asked() {
    const { ask } = this.collection;
    if (ask === null) return [...this.collection.questions.keys()];
    const units = this.#sortedUnits();
    const key = `chosen/${fingerprintOf({ ask, units })}`;
    if (!this.#memory.has(key)) {
      const drawn = firstOfShuffled(units.map((_, position) => position), ask, this.#source).slice(0, ask);
      this.#memory.set(key, drawn.toSorted((first, second) => first - second).flatMap((position) => units[position]));
    }
    const chosen = new Set(this.#memory.get(key));
    return [...this.#keys].filter(([, question]) => chosen.has(question)).map(([name]) => name);
  }

  /** The keys of the questions of every unit, in an order that does not depend on that of the questions. */
  #sortedUnits() {
    const keys = unitsOf(this.collection).map((unit) => unit.map((name) => this.#keys.get(name)).toSorted());
    return keys.toSorted((first, second) => (first.join() < second.join() ? -1 : 1));
  }

  #refuseUninvited(invitation) {
    if (invitation !== null || this.collection.poll?.access !== "invited") return;
    throw new Refused(
      `"${this.collection.name}" accepts reports of invited people only. Nothing was sent.`,
      "Use the code of your invitation.",
    );
  }

  /** Refuse other true values if only one report is accepted, and answers that exceed the lifetime. */
  #refuse(codes) {
    const lock = this.#memory.get(this.#key("once"));
    if (lock !== undefined && (!lock || lock !== this.#identity(...valuesOf(codes)))) {
      throw new Refused(
        `"${this.collection.name}" accepts one report per person, and yours was already sent.`,
        "The same answers send that report again, unless they were forgotten; different answers are not accepted.",
        { key: "once", values: {} },
      );
    }
    const unpaid = this.#unpaid(codes);
    if (unpaid.length) this.#account().refuse(total(unpaid.map(([name]) => this.#lossOf(name))), unpaid.length);
  }

  /** Store the stated lifetime if it is the first or a lower one. */
  #meet() {
    this.#convert();
    const [key, record] = this.#account().record();
    if (JSON.stringify(this.#memory.get(key)) !== JSON.stringify(record)) this.#memory.set(key, record);
  }

  #account() {
    return Account.read(this.#memory, this.holder, this.collection.lifetime ?? this.#defaultLifetime());
  }

  /** The lifetime if none is stated: enough for one report if only one is accepted, else for one change of every answer. */
  #defaultLifetime() {
    const report = largestSum(this.collection, (name) => this.#lossOf(name));
    return report === null || this.collection.repeats === "once" ? report : report.times(2n);
  }

  /** The cost of an answer: its epsilon; for a basket the logarithm of gamma, rounded up to six decimals. */
  #lossOf(name) {
    this.#losses ??= new Map([...this.collection.questions].map((entry) => [entry[0], this.#computedLoss(...entry)]));
    return this.#losses.get(name);
  }

  #computedLoss(name) {
    const operator = this.operators.get(name);
    return operator.basket ? roundedLoss(operator.lifetimeGamma()) : statedLoss(this.collection.questions.get(name));
  }

  /** Return the questions, with their codes, whose true value was not sent to this holder yet. */
  #unpaid(codes) {
    return codes.filter(([name, code]) => !this.#isSent(this.#record(name, code)));
  }

  #record(name, code) {
    return this.#memory.get(this.#place(name, code));
  }

  #isSent(record) {
    return record !== undefined && Object.hasOwn(record.state, this.holder);
  }

  #inState({ report, state }, now) {
    return { report, state: { ...state, [this.holder]: now } };
  }

  /** Return the answer to a true value: stored, or drawn and stored before it is used. */
  #permanent(name, code) {
    const place = this.#place(name, code);
    if (!this.#memory.has(place)) {
      const operator = this.operators.get(name);
      const draw = operator.samplePermanent ?? operator.sample;
      this.#memory.set(place, { report: draw(this.#memoryCode(name, code), this.#source), state: {} });
    }
    return this.#memory.get(place).report;
  }

  /** Convert the memory of an earlier version: its answers count as sent and are not drawn again. */
  #convert() {
    for (const key of this.#memory.keys().filter((one) => one.endsWith("/about"))) {
      const [about, start] = [this.#memory.get(key), `${key.slice(0, -"about".length)}answer/`];
      const answers = this.#memory.keys().filter((other) => other.startsWith(start));
      const parts = answers.map((old) => [old, ...splitLast(old.slice(start.length))]);
      if (!about.counted) {
        this.#count(about.collection, total(parts.map(([, question]) => earlierLoss(about.epsilons[question]))));
        this.#memory.set(key, { ...about, counted: true });
      }
      if (key !== this.#key("about")) continue;
      this.#takeOver(parts);
      this.#memory.remove(key);
    }
  }

  #count(holder, more) {
    const record = this.#memory.get(`holder/${holder}`) ?? {};
    const spent = total([Account.read(this.#memory, holder, null).spent, more]);
    this.#memory.set(`holder/${holder}`, { ...record, spent: textOf(spent) });
  }

  #takeOver(parts) {
    for (const [old, name, code] of parts) {
      this.#memory.set(this.#place(name, BigInt(code)), { report: this.#memory.get(old), state: { [this.holder]: "sent" } });
    }
    const codes = new Map(parts.map(([, name, code]) => [name, BigInt(code)]));
    if (this.collection.repeats === "once" && codes.size === this.collection.questions.size) {
      const inOrder = [...this.collection.questions.keys()].map((name) => codes.get(name));
      this.#memory.set(this.#key("once"), this.#identity(...inOrder));
    }
    for (const [old] of parts) this.#memory.remove(old);
  }

  #identity(...parts) {
    if (!this.#memory.has("seal")) this.#memory.set("seal", hex(this.#source.take(32)));
    return identityOf(this.#memory.get("seal"), this.collection.fingerprint, ...parts);
  }

  #givenTo(question) {
    const [start, loss] = [`answer/${this.#keys.get(question)}/`, this.#lossOf(question)];
    const places = this.#memory.keys().filter((key) => key.startsWith(start));
    const answered = places.filter((place) => this.#isSent(this.#memory.get(place))).length;
    return new Given(question, answered, answered && (loss === null ? Infinity : loss.times(answered).toNumber()));
  }

  #place(name, code) {
    return `answer/${this.#keys.get(name)}/${this.#memoryCode(name, code).toString(16)}`;
  }

  /** What a permanent answer belongs to: the true value, or its cell by the seed of this device. */
  #memoryCode(name, code) {
    const [operator, key] = [this.operators.get(name), `seed/${this.#keys.get(name)}`];
    if (!operator.drawSeed) return code;
    if (!this.#memory.has(key)) this.#memory.set(key, operator.drawSeed(this.#source));
    return operator.memoryCode(code, this.#memory.get(key));
  }

  #draftKey(codes) {
    return this.#key("draft", valuesOf(codes).map((code) => code.toString(16)).join("-"));
  }

  #key(...parts) {
    return [this.collection.fingerprint, ...parts].join("/");
  }
}

const LASTING = ["holder/", "chosen/", "token/", "seed/"]; // keys of the memory that `forget` keeps

const withInvitation = (report, invitation) => (invitation === null ? report : { ...report, invitation });

const valuesOf = (codes) => codes.map(([, code]) => code);

function splitLast(path) {
  const at = path.lastIndexOf("/");
  return [path.slice(0, at), path.slice(at + 1)];
}

const MICRO = 1_000_000n;

/** Earlier memories contain the logarithm of the drawn ratio, slightly below the promise: round it up to six decimals. */
const earlierLoss = (loss) => (loss === null || loss === undefined ? null : new Fraction(BigInt(Math.ceil(loss * 1e6)), MICRO));
