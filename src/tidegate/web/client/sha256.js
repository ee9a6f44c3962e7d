/**
 * SHA-256 and HMAC in plain JavaScript. The browser's version (crypto.subtle) is missing on pages without https and is
 * asynchronous; this one is always available and synchronous.   Reference: FIPS 180-4, FIPS 198-1.
 */

const BLOCK = 64;
const [START, ROUND] = constants();

/** The digest of bytes: 32 bytes. */
export function sha256(bytes) {
  const state = Uint32Array.from(START);
  const words = padded(bytes);
  for (let at = 0; at < words.length; at += 16) compress(state, words.subarray(at, at + 16));
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((word, place) => digest.setUint32(4 * place, word));
  return new Uint8Array(digest.buffer);
}

/** The keyed digest of bytes: 32 bytes. */
export function hmac(key, bytes) {
  const short = key.length > BLOCK ? sha256(key) : key;
  const pad = (mark) => Uint8Array.from({ length: BLOCK }, (_, i) => (short[i] ?? 0) ^ mark);
  return sha256(joined(pad(0x5c), sha256(joined(pad(0x36), bytes))));
}

export const utf8 = (text) => new TextEncoder().encode(text);
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
export const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));

function joined(one, other) {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

/** The message as 32-bit words: a one bit, zeros, and its length in bits. */
function padded(bytes) {
  const size = Math.ceil((bytes.length + 9) / BLOCK) * BLOCK;
  const whole = new Uint8Array(size);
  whole.set(bytes);
  whole[bytes.length] = 0x80;
  const view = new DataView(whole.buffer);
  view.setUint32(size - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(size - 4, (bytes.length << 3) >>> 0);
  return Uint32Array.from({ length: size / 4 }, (_, i) => view.getUint32(4 * i));
}

function compress(state, block) {
  const w = schedule(block);
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i++) {
    const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + ROUND[i] + w[i]) | 0;
    const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, place) => (state[place] += word));
}

function schedule(block) {
  const w = new Uint32Array(64);
  w.set(block);
  for (let i = 16; i < 64; i++) {
    const low = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >>> 3);
    const high = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >>> 10);
    w[i] = w[i - 16] + low + w[i - 7] + high;
  }
  return w;
}

function turn(word, by) {
  return (word >>> by) | (word << (32 - by));
}

/** The first 32 fractional bits of the square roots of 8 primes and of the cube roots of 64, in integers. */
function constants() {
  const primes = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime)) primes.push(n);
  const bits = (prime, power) => Number(root(BigInt(prime) << BigInt(32 * power), power) & 0xffffffffn);
  return [primes.slice(0, 8).map((prime) => bits(prime, 2)), primes.map((prime) => bits(prime, 3))];
}

/** The integer part of a root, by bisection. */
function root(value, power) {
  let [low, high] = [0n, 1n << 40n];
  while (high - low > 1n) {
    const middle = (low + high) / 2n;
    [low, high] = middle ** BigInt(power) <= value ? [middle, high] : [low, middle];
  }
  return low;
}
