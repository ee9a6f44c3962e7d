/** What tests run in the page. `base` is where the modules lie: as they are shipped, or with a fault planted. */

import { SeededBytes } from "./seeded.js";

const load = async (base, ...files) => Object.assign({}, ...(await Promise.all(files.map((file) => import(`${base}/${file}`)))));
const asCode = (basket) => basket.reduce((code, item) => code | (1n << BigInt(item)), 0n);

/** Recipes, permanent answers and fresh reports of vectors. */
export async function operators(base, vectors) {
  const { readQuestion, operatorFor } = await load(base, "question.js", "operators/index.js");
  return vectors.map(({ seed, question, codes, baskets }) => {
    const [operator, source] = [operatorFor(readQuestion(question, "question")), new SeededBytes(seed)];
    const permanent = (baskets?.map(asCode) ?? codes).map((code) => operator.sample(code, source));
    return { recipe: operator.recipe(), permanent, fresh: permanent.map((answer) => operator.repeated(answer, source)) };
  });
}

/** Codes, recipes and reports of vectors about texts. */
export async function texts(base, vectors) {
  const { readQuestion, operatorFor, codeOf } = await load(base, "question.js", "operators/index.js", "coding.js");
  return vectors.map(({ seed, question: content, texts: written }) => {
    const question = readQuestion(content, "question");
    const [operator, source] = [operatorFor(question), new SeededBytes(seed)];
    const codes = written.map((text) => codeOf(question, text));
    const reports = codes.map((code) => operator.sample(code, source));
    return { recipe: operator.recipe(), codes: codes.map((code) => code.toString(16).padStart(16, "0")), reports };
  });
}

/** Whole stories of clients: each with a memory, a stream and some steps one after the other, as texts; and the memory. */
export async function stories(base, cases) {
  const { Client, PageMemory } = await load(base, "client.js", "memory.js");
  const told = [];
  for (const { seed, description, later, memory: before = {}, steps: planned } of cases) {
    const [memory, source] = [new PageMemory(), new SeededBytes(seed)];
    for (const [key, value] of Object.entries(before)) memory.set(key, value);
    const clients = [description, ...(later ? [later] : [])].map((one) => new Client(one, { memory, source }));
    const steps = [];
    for (const { version = 0, work, answers } of planned) steps.push(await said(() => DO[work](clients[version], answers)));
    const client = clients.at(-1);
    const given = await client.given();
    const content = JSON.stringify(Object.fromEntries(memory.keys().map((key) => [key, memory.get(key)])));
    const account = String(await client.account());
    told.push({ steps, given: given.map(String), epsilons: given.map(({ epsilon }) => epsilon), account, memory: content });
  }
  return told;
}

const DO = {
  randomize: async (client, answers) => JSON.stringify(await client.randomize(answers)),
  draft: async (client, answers) => JSON.stringify(await client.draft(answers)),
  start: async (client, answers) => JSON.stringify(await client.start(answers)),
  confirm: async (client, answers) => (await client.confirm(answers)) ?? null,
  tell: (client, answers) => client.tell(answers),
  forget: async (client) => (await client.forget()) ?? null,
};

/** The keys under which answers to questions are remembered. */
export async function keys(base, asked) {
  const { readQuestion, questionKey } = await load(base, "question.js", "memory.js");
  return asked.map(({ holder, question }) => questionKey(holder, readQuestion(question, "question")));
}

/** The code of each value, -1 where it is refused, and the text of each code from `first` to `last`. */
export async function codes(base, question, values, first, last) {
  const { readQuestion, codeOf, wordsOf } = await load(base, "question.js", "coding.js");
  const asked = readQuestion(question, "question");
  const coded = [];
  for (const value of values) coded.push(await said(async () => codeOf(asked, value)));
  const words = Array.from({ length: last - first + 1 }, (_, place) => wordsOf(asked, first + place));
  return { codes: coded.map((code) => (typeof code === "number" ? code : -1)), words, says: asked.universe.says };
}

async function said(work) {
  try {
    return await work();
  } catch (refused) {
    if (refused.name !== "Refused") throw refused;
    return { refused: refused.what };
  }
}

/** For each description: null where it is taken, else why not. */
export async function readings(base, descriptions) {
  const { readDescription, operatorFor } = await load(base, "description.js", "operators/index.js");
  const read = (one) => [...readDescription(one).questions.values()].map(operatorFor) && null;
  return Promise.all(descriptions.map((one) => said(async () => read(one)).then((why) => why?.refused ?? null)));
}

/** How often each code is reported of a value, from the browser's own generator. */
export async function counts(base, question, code, draws) {
  const { readQuestion, operatorFor, SystemBytes } = await load(base, "question.js", "operators/index.js", "bits.js");
  const operator = operatorFor(readQuestion(question, "question"));
  const [source, found] = [new SystemBytes(), Array.from({ length: operator.reportSize }, () => 0)];
  for (let i = 0; i < draws; i++) found[operator.sample(code, source)]++;
  return found;
}

export async function saying(base, pairs) {
  const { say, Fraction } = await load(base, "text.js", "fraction.js");
  return pairs.map(([over, under, digits]) => say(new Fraction(BigInt(over), BigInt(under)), digits));
}

export async function digests(base, texts) {
  const { sha256, hmac, hex, utf8 } = await load(base, "sha256.js");
  return texts.map((text) => [hex(sha256(utf8(text))), hex(hmac(utf8(text), utf8("message")))]);
}

/** Tokens from seeded bytes, with the signer's answers given: what is stored before each request, what is sent, and the token. */
export async function tokens(base, key, vectors) {
  const { obtain, PageMemory } = await load(base, "invitation.js", "memory.js");
  const results = [];
  for (const { seed, code, place, answer } of vectors) {
    const [memory, source, sent] = [new PageMemory(), new SeededBytes(seed), {}];
    const sign = async (address, body) => {
      Object.assign(sent, { address, ...body, record: memory.get(place) });
      return answer;
    };
    const outcome = await said(() => obtain("/tokens", code.toLowerCase(), key, memory, { source, sign }));
    results.push({ outcome, sent, memory: memory.get(place) });
  }
  return results;
}

/** The steps of blind signatures with given salts and factors, as hexadecimal digits. */
export async function blindSignatures(base, vectors) {
  const { blind, finalize, isSigned, hex, unhex } = await load(base, "invitation.js", "sha256.js");
  return vectors.map(({ key, prepared, salt, factor, answer }) => {
    const [modulus, message] = [unhex(key), unhex(prepared)];
    const { blinded, inverse } = blind(modulus, message, undefined, { salt: unhex(salt), factor: BigInt(factor) });
    const signature = finalize(modulus, message, unhex(answer), inverse, salt.length / 2);
    const changed = signature.map((byte, index) => (index === 7 ? byte ^ 1 : byte));
    const checks = [signature, changed].map((bytes) => isSigned(modulus, message, bytes, salt.length / 2));
    return { blinded: hex(blinded), inverse: inverse.toString(), signature: hex(signature), checks };
  });
}

/** SHA-384 of byte strings of some lengths, as hexadecimal digits. */
export async function digests384(base, lengths) {
  const { sha384, hex } = await load(base, "sha384.js", "sha256.js");
  return lengths.map((length) => hex(sha384(Uint8Array.from({ length }, (_, index) => index % 251))));
}

/** What the reading of codes returns for texts; null where one is refused. */
export async function codesRead(base, texts) {
  const { formatCode } = await load(base, "invitation.js");
  return texts.map((text) => {
    try {
      return formatCode(text);
    } catch {
      return null;
    }
  });
}
