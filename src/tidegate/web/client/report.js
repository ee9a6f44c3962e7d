/** A report: all that ever leaves a person's device. */

import { hex, hmac, unhex, utf8 } from "./sha256.js";

/** Names the collection, holds randomized answers and a random name of its own. */
export function makeReport(collection, answers, identity) {
  const { name, fingerprint, version } = collection;
  return { collection: name, fingerprint, version, answers: Object.fromEntries(answers), id: identity };
}

/** 128 bits that only the client could have made: the same for the same parts, and telling nothing about them. */
export function identityOf(seal, ...parts) {
  const text = `[${parts.map((part) => (typeof part === "string" ? JSON.stringify(part) : String(part))).join(",")}]`;
  return hex(hmac(unhex(seal), utf8(text))).slice(0, 32);
}
