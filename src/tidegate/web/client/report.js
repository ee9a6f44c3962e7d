/** A report: the only data that leaves a person's device. */

import { hex, hmac, unhex, utf8 } from "./sha256.js";

/** Create a report: the collection, the randomized answers, and a random id. */
export function makeReport(collection, answers, identity) {
  const { name, fingerprint, version } = collection;
  return { collection: name, fingerprint, version, answers: Object.fromEntries(answers), id: identity };
}

/** 128 bits that only the client can compute: the same for the same parts, and revealing nothing about them. */
export function identityOf(seal, ...parts) {
  const text = `[${parts.map((part) => (typeof part === "string" ? JSON.stringify(part) : String(part))).join(",")}]`;
  return hex(hmac(unhex(seal), utf8(text))).slice(0, 32);
}
