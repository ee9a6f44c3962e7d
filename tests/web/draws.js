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

/** Whole stories of clients: each with a memory, a stream and some answers one after the other, as texts. */
export async function stories(base, cases) {
  const { Client, PageMemory } = await load(base, "client.js", "memory.js");
  const told = [];
  for (const { seed, description, answers } of cases) {
    const client = new Client(description, { memory: new PageMemory(), source: new SeededBytes(seed) });
    const steps = [];
    for (const one of answers) {
      steps.push(await said(async () => JSON.stringify(await client.randomize(one))));
      steps.push(await said(() => client.tell(one)));
    }
    const given = await client.given();
    told.push({ steps, given: given.map(String), epsilons: given.map(({ epsilon }) => epsilon) });
  }
  return told;
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
  const { say, Fraction } = await load(base, "saying.js", "fraction.js");
  return pairs.map(([over, under, digits]) => say(new Fraction(BigInt(over), BigInt(under)), digits));
}

export async function digests(base, texts) {
  const { sha256, hmac, hex, utf8 } = await load(base, "sha256.js");
  return texts.map((text) => [hex(sha256(utf8(text))), hex(hmac(utf8(text), utf8("message")))]);
}
