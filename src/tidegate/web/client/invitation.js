/**
 * Invitations: the token that a device gets for its code. The same as collect/invitations.py and blind_signatures.py.
 *
 *   await obtain(address, code, key, memory)      { nonce, signature } for the report
 *
 * The device sends the code with a blinded message and gets a blind signature. The service cannot relate the token to the
 * code. The memory has one record for each key, under token/FINGERPRINT (SHA-256 of the key):
 *
 *   { nonce, blinded, inverse }      before the first request, so that a lost response can be requested again
 *   { nonce, signature }             afterwards
 *
 * `key` is the `invitation_key` of the description: an RSA modulus in base64url; the exponent is 65537.
 *
 * Reference: RFC 9474 (RSABSSA-SHA384-PSS-Randomized); PSS as in RFC 8017, section 9.1.
 */

import { SystemBytes, belowBig } from "./bits.js";
import { Refused } from "./refused.js";
import { hex, sha256, unhex } from "./sha256.js";
import { sha384 } from "./sha384.js";

const EXPONENT = 65537n;
const [PREFIX, SALT, DIGEST, KEY_BYTES, NONCE_BYTES] = [32, 48, 48, 256, 32];
const LEAST_BITS = 2048;
const TRAILER = 0xbc;
const CODE = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const PATIENCE = 30_000; // milliseconds to wait for a response

/** The message with its random prefix: the bytes that are signed. */
export function prepare(message, source = new SystemBytes()) {
  return joined(source.take(PREFIX), message);
}

/** The blinded message for the signer, and the inverse of the blinding factor, which stays secret. Salt and factor: for tests. */
export function blind(key, prepared, source = new SystemBytes(), { salt, factor } = {}) {
  const modulus = modulusOf(key);
  const encoded = whole(encode(prepared, salt ?? source.take(SALT), bitLength(modulus) - 1));
  const chosen = factor ?? unit(modulus, source);
  const inverse = inverseOf(chosen, modulus);
  if (inverse === null || inverseOf(encoded, modulus) === null) throw invalidKey();
  return { blinded: bytesOf((encoded * power(chosen, EXPONENT, modulus)) % modulus, key.length), inverse };
}

/** The signature of a prepared message from the signer's response; refused unless it is valid under the key. */
export function finalize(key, prepared, answer, inverse, saltSize = SALT) {
  const modulus = modulusOf(key);
  const number = whole(answer);
  const signature = bytesOf((number * inverse) % modulus, key.length);
  if (answer.length !== key.length || number >= modulus || !isSigned(key, prepared, signature, saltSize)) {
    throw refused(
      "key",
      "The service's signature does not match the key of this poll. It was not used.",
      "Ask the holder for help: a service that signs with several keys could tell people apart.",
    );
  }
  return signature;
}

/** Whether a signature of a prepared message is valid. */
export function isSigned(key, prepared, signature, saltSize = SALT) {
  const modulus = modulusOf(key);
  const number = whole(signature);
  if (signature.length !== key.length || number >= modulus) return false;
  const bits = bitLength(modulus) - 1;
  const encoded = power(number, EXPONENT, modulus);
  const size = Math.ceil(bits / 8);
  return bitLength(encoded) <= 8 * size && matches(prepared, bytesOf(encoded, size), bits, saltSize);
}

/** Return a code in the form in which it was created. Case, spaces and hyphens do not matter; O is 0, and I and L are 1. */
export function formatCode(text) {
  const digits = text.replace(/[\s-]/g, "").toUpperCase().replace(/O/g, "0").replace(/[IL]/g, "1");
  if (!CODE.test(digits)) {
    throw refused(
      "unknown",
      "This is not an invitation code.",
      "A code has 26 letters and digits in groups of four. Check it for typing errors.",
    );
  }
  return digits.match(/.{1,4}/g).join("-");
}

/** Whether the memory has a token of a key, so that no code is needed. */
export const hasToken = (key, memory) => memory.get(memoryKey(keyBytes(key)))?.signature !== undefined;

/**
 * Return the token of a poll's key; the memory has it if it was obtained before.
 *
 * Guarantee: Message and blinding are in the memory before the request. After a lost response the same request is sent again,
 * which the service answers with the same signature. Refusals have a `reason`: unknown, used, closed, often, unreachable, key.
 */
export async function obtain(address, code, key, memory, { source = new SystemBytes(), sign = ask } = {}) {
  const bytes = keyBytes(key);
  const place = memoryKey(bytes);
  const record = await memory.held(() => {
    if (!memory.has(place)) memory.set(place, drawn(bytes, source));
    return memory.get(place);
  });
  if (record.signature !== undefined) return { nonce: record.nonce, signature: record.signature };
  const answer = await sign(address, { code: formatCode(code), blinded: record.blinded });
  const signature = finalize(bytes, unhex(record.nonce), fromText(answer), whole(fromText(record.inverse)));
  const token = { nonce: record.nonce, signature: toText(signature) };
  await memory.held(() => memory.set(place, token));
  return token;
}

function drawn(key, source) {
  const message = source.take(NONCE_BYTES);
  const prepared = prepare(message, source);
  const { blinded, inverse } = blind(key, prepared, source);
  return { nonce: hex(prepared), blinded: toText(blinded), inverse: toText(bytesOf(inverse, key.length)) };
}

/** Ask the service for a blind signature. Only code and blinded message are sent: no cookie, no referrer. */
async function ask(address, body) {
  const giveUp = new AbortController();
  const timer = setTimeout(() => giveUp.abort(), PATIENCE);
  let [status, content] = [0, null];
  try {
    const answer = await fetch(address, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      credentials: "omit",
      referrerPolicy: "no-referrer",
      cache: "no-store",
      redirect: "error",
      signal: giveUp.signal,
    });
    status = answer.status;
    content = await answer.json();
  } catch {
    if (!status) throw unreachable();
  } finally {
    clearTimeout(timer);
  }
  if (status === 200 && typeof content?.signature === "string") return content.signature;
  if (typeof content?.detail !== "string" || status >= 500) throw unreachable();
  throw refused(content.facts?.reason ?? (status === 429 ? "often" : "refused"), content.detail, String(content.do));
}

function unreachable() {
  return refused(
    "unreachable",
    "The holder's service could not be reached, so your code was not checked.",
    "Try again. Your code stays valid on this device.",
  );
}

function refused(reason, what, next) {
  return Object.assign(new Refused(what, next), { reason });
}

const invalidKey = () =>
  refused("key", "The invitation key of this poll is not valid.", "Ask the holder for a new link. Nothing was sent.");

function keyBytes(key) {
  const bytes = fromText(key);
  if (bytes.length !== KEY_BYTES) throw invalidKey();
  return bytes;
}

const memoryKey = (bytes) => `token/${hex(sha256(bytes))}`;

// PSS

function encode(message, salt, bits) {
  const size = Math.ceil(bits / 8);
  const digest = saltedDigest(message, salt);
  const padding = new Uint8Array(size - salt.length - DIGEST - 1);
  padding[padding.length - 1] = 1;
  return joined(masked(joined(padding, salt), digest, 8 * size - bits), digest, Uint8Array.of(TRAILER));
}

function matches(message, encoded, bits, saltSize) {
  const spare = 8 * encoded.length - bits;
  const [hidden, digest] = [encoded.slice(0, -DIGEST - 1), encoded.slice(-DIGEST - 1, -1)];
  if (encoded.at(-1) !== TRAILER || hidden[0] >> (8 - spare)) return false;
  const padded = masked(hidden, digest, spare);
  const start = padded.length - saltSize - 1;
  if (padded.slice(0, start).some(Boolean) || padded[start] !== 1) return false;
  return hex(saltedDigest(message, padded.slice(start + 1))) === hex(digest);
}

function saltedDigest(message, salt) {
  return sha384(joined(new Uint8Array(8), sha384(message), salt));
}

/** Content under the mask of a seed (MGF1), without its `spare` highest bits. */
function masked(content, seed, spare) {
  const blocks = Array.from({ length: Math.ceil(content.length / DIGEST) }, (_, n) => sha384(joined(seed, Uint8Array.of(0, 0, n >> 8, n))));
  const mask = joined(...blocks);
  const result = content.map((byte, index) => byte ^ mask[index]);
  result[0] &= 0xff >> spare;
  return result;
}

// Numbers

function modulusOf(key) {
  const modulus = whole(key);
  const bits = bitLength(modulus);
  if (bits < LEAST_BITS || bits !== 8 * key.length || modulus % 2n === 0n) throw invalidKey();
  return modulus;
}

/** A uniform number below the modulus that has an inverse. */
function unit(modulus, source) {
  for (;;) {
    const number = belowBig(modulus, source);
    if (inverseOf(number, modulus) !== null) return number;
  }
}

function power(base, exponent, modulus) {
  let [result, square] = [1n, base % modulus];
  for (let left = exponent; left; left >>= 1n) {
    if (left & 1n) result = (result * square) % modulus;
    square = (square * square) % modulus;
  }
  return result;
}

/** The inverse by Euclid's algorithm; null if there is none. */
function inverseOf(number, modulus) {
  let [r, next, t, later] = [modulus, number % modulus, 0n, 1n];
  while (next) {
    const quotient = r / next;
    [r, next, t, later] = [next, r - quotient * next, later, t - quotient * later];
  }
  return r === 1n ? ((t % modulus) + modulus) % modulus : null;
}

const bitLength = (number) => number.toString(2).length;
const whole = (bytes) => (bytes.length ? BigInt(`0x${hex(bytes)}`) : 0n);
const bytesOf = (number, size) => unhex(number.toString(16).padStart(2 * size, "0"));

// Bytes

function joined(...parts) {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Bytes as base64url without padding. */
function toText(bytes) {
  return btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

function fromText(text) {
  if (!/^[A-Za-z0-9_-]*$/.test(text)) throw invalidKey();
  return Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
}
