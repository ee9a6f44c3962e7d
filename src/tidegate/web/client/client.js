/**
 * The client: randomizes in the page and hands out reports only.
 *
 *   const client = new Client(description, { fingerprint: "cf7c4c..." });   what the holder published, and its fingerprint
 *   await client.draft({ age: 34, town: "L1" });                            the report as it would be sent; costs nothing
 *   await client.start({ age: 34, town: "L1" });                            the same report, charged: it may leave now
 *   await client.confirm({ age: 34, town: "L1" });                          it was received
 *   await client.randomize({ age: 34, town: "L1" });                        draft and start, handed out for good
 *   await client.tell({ age: 34, town: "L1" });                             what it gives away, in words; costs nothing
 *   client.told(report);                                                    the same of a report that was made already
 *   await client.given(); await client.account();                           what all answers so far give away
 *   await client.forget();                                                  remove answers and drafts, keep what was used
 *
 * An answer is a draft, then sending, then sent. It is drawn once for each true value and stays as it is. What it costs is
 * charged when it becomes sending, before it leaves: a lost response may hide a report that arrived.
 *
 * The same bytes give the same report as in the Python client, byte for byte, and the same memory.
 */

import { readAloud } from "./aloud.js";
import { SystemBytes } from "./bits.js";
import { codeOf } from "./coding.js";
import { readDescription } from "./description.js";
import { Fraction, bitLength } from "./fraction.js";
import { Account, StoredMemory, questionKey, textOf, total } from "./memory.js";
import { operatorFor } from "./operators/index.js";
import { ONE, expBelow } from "./powers.js";
import { Refused } from "./refused.js";
import { identityOf, makeReport } from "./report.js";
import { commas, say } from "./saying.js";
import { hex } from "./sha256.js";

/** What one client has sent to one question: how many different true values were answered, and the loss of all. */
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
 * Guarantee  The same true value gives the same permanent answer for as long as the memory lasts, in every version that
 *            asks the same, so repeats tell nothing new; it is in the memory before a report of it exists. All reports ever
 *            handed out to a holder use no more than the lifetime. With repeats = "once" a second, different report is
 *            refused. Only the values of `start` and `randomize` may leave.
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

  /** The report as it would be sent. It is drawn once and kept; nothing is charged, and nothing is locked. */
  async draft(answers) {
    const codes = this.#codes(answers);
    return this.#memory.held(() => this.#drawn(codes));
  }

  /** The report of true answers, charged: it may leave now. Until it is confirmed the same bytes come again. */
  async start(answers) {
    const codes = this.#codes(answers);
    return this.#memory.held(() => this.#started(codes));
  }

  /** Remember that the report which `start` gave was received. */
  async confirm(answers) {
    const codes = this.#codes(answers);
    return this.#memory.held(() => {
      for (const [name, code] of codes) {
        const record = this.#record(name, code);
        if (this.#isSent(record)) this.#memory.set(this.#place(name, code), this.#inState(record, "sent"));
      }
      this.#memory.remove(this.#draftKey(codes));
    });
  }

  /** The report of true answers, charged and handed out. The same answers give the same report (but for a fresh layer). */
  async randomize(answers) {
    const codes = this.#codes(answers);
    return this.#memory.held(() => {
      const report = this.#started(codes);
      this.#memory.remove(this.#draftKey(codes));
      return report;
    });
  }

  /** What would be sent and what its holder can conclude, question by question, in words. Nothing is charged. */
  async tell(answers) {
    return this.told(await this.draft(answers));
  }

  /** As `tell`, of a report that was made already. */
  told(report) {
    const aloud = (name, question) => readAloud(question, this.operators.get(name), report.answers[name]);
    return [...this.collection.questions].map(([name, question]) => `${name}: ${aloud(name, question)}`);
  }

  /** What all answers sent so far give away, question by question, over all versions that ask the same. */
  async given() {
    return this.#memory.held(() => {
      this.#convert();
      return [...this.collection.questions.keys()].map((name) => this.#givenTo(name));
    });
  }

  /** What all answers to this holder have used of the lifetime, in any of their collections. */
  async account() {
    return this.#memory.held(() => {
      this.#convert();
      return this.#account();
    });
  }

  /** Whether the memory holds answers or drafts of any collection. */
  remembers() {
    return this.#memory.keys().some((key) => key.startsWith("answer/"));
  }

  /** Remove all answers and drafts from the memory. What was used of each lifetime stays used, and `once` stays once. */
  async forget() {
    return this.#memory.held(() => {
      this.#convert();
      for (const key of this.#memory.keys()) {
        if (key.endsWith("/once")) this.#memory.set(key, "");
        else if (!key.startsWith("holder/")) this.#memory.remove(key);
      }
    });
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

  /** Charge and lock what was not sent before, the charge first, and only then give the report. */
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

  /** Refuse other true values where one report is taken, and what the lifetime has no room for. */
  #refuse(codes) {
    const lock = this.#memory.get(this.#key("once"));
    if (lock !== undefined && (!lock || lock !== this.#identity(...valuesOf(codes)))) {
      throw new Refused(
        `"${this.collection.name}" takes one report of each person, and yours was sent already.`,
        "The same answers send that report again, unless they were forgotten; others are not taken.",
      );
    }
    const unpaid = this.#unpaid(codes);
    if (unpaid.length) this.#account().refuse(total(unpaid.map(([name]) => this.#lossOf(name))), unpaid.length);
  }

  /** Keep the lifetime that is stated, where it is the first or a lower one. */
  #meet() {
    this.#convert();
    const [key, record] = this.#account().record();
    if (JSON.stringify(this.#memory.get(key)) !== JSON.stringify(record)) this.#memory.set(key, record);
  }

  #account() {
    return Account.read(this.#memory, this.holder, this.collection.lifetime ?? this.#defaultLifetime());
  }

  /** Of a collection that states none: room for one report where it takes one, else for one change of every answer. */
  #defaultLifetime() {
    const report = total([...this.operators.keys()].map((name) => this.#lossOf(name)));
    return report === null || this.collection.repeats === "once" ? report : report.times(2n);
  }

  /** What an answer to a question costs: its epsilon; of a basket the logarithm, rounded up to six decimals. */
  #lossOf(name) {
    this.#losses ??= new Map([...this.collection.questions].map((entry) => [entry[0], this.#computedLoss(...entry)]));
    return this.#losses.get(name);
  }

  #computedLoss(name, { universe, parameters }) {
    return universe.kind === "items" ? roundedLoss(this.operators.get(name).lifetimeGamma()) : (parameters.epsilon ?? null);
  }

  /** The questions, with their codes, whose true value was not sent to this holder yet. */
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

  /** The answer to a true value: remembered, or drawn and remembered before it is used. */
  #permanent(name, code) {
    const place = this.#place(name, code);
    if (!this.#memory.has(place)) {
      this.#memory.set(place, { report: this.operators.get(name).sample(code, this.#source), state: {} });
    }
    return this.#memory.get(place).report;
  }

  /** Take over what an earlier version remembered: its answers count as sent, and are not drawn again. */
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
    return `answer/${this.#keys.get(name)}/${code.toString(16)}`;
  }

  #draftKey(codes) {
    return this.#key("draft", valuesOf(codes).map((code) => code.toString(16)).join("-"));
  }

  #key(...parts) {
    return [this.collection.fingerprint, ...parts].join("/");
  }
}

const valuesOf = (codes) => codes.map(([, code]) => code);

function splitLast(path) {
  const at = path.lastIndexOf("/");
  return [path.slice(0, at), path.slice(at + 1)];
}

const MICRO = 1_000_000n;

/** Earlier memories hold the logarithm of the drawn ratio, a little below what was promised: up to six decimals. */
const earlierLoss = (loss) => (loss === null || loss === undefined ? null : new Fraction(BigInt(Math.ceil(loss * 1e6)), MICRO));

/** The least epsilon of six decimals with e**epsilon at or above a ratio, verified in whole numbers. */
function roundedLoss(ratio) {
  if (ratio === null) return null;
  const first = Math.ceil((logarithm(ratio) - 1e-9) * 1e6);
  let loss = new Fraction(BigInt(Math.max(0, first)), MICRO);
  while (ratio.n * ONE > ratio.d * expBelow(loss)) loss = loss.plus(new Fraction(1n, MICRO));
  return loss;
}

/** Of any fraction above 0, also one that no double can hold. */
function logarithm(ratio) {
  const near = ratio.toNumber();
  return near < 1e300 ? Math.log(near) : logOfWhole(ratio.n) - logOfWhole(ratio.d);
}

function logOfWhole(whole) {
  const shift = Math.max(0, bitLength(whole) - 60);
  return Math.log(Number(whole >> BigInt(shift))) + shift * Math.LN2;
}
