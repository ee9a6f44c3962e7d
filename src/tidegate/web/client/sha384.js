/**
 * SHA-384 in plain JavaScript, for invitations. The browser's version (crypto.subtle) is missing on pages without https.
 * Words of 64 bits are BigInts: a token needs some twenty blocks, which takes milliseconds.   Reference: FIPS 180-4.
 */

const BLOCK = 128;
const MASK = (1n << 64n) - 1n;
const [START, ROUND] = constants();

/** The digest of bytes: 48 bytes. */
export function sha384(bytes) {
  let state = START;
  const words = padded(bytes);
  for (let at = 0; at < words.length; at += 16) state = compressed(state, words.slice(at, at + 16));
  const digest = new DataView(new ArrayBuffer(48));
  state.slice(0, 6).forEach((word, index) => digest.setBigUint64(8 * index, word));
  return new Uint8Array(digest.buffer);
}

/** The message as 64-bit words: a one bit, zeros, and its length in bits (128 bits, of which the upper half is zero). */
function padded(bytes) {
  const size = Math.ceil((bytes.length + 17) / BLOCK) * BLOCK;
  const whole = new Uint8Array(size);
  whole.set(bytes);
  whole[bytes.length] = 0x80;
  const view = new DataView(whole.buffer);
  view.setBigUint64(size - 8, 8n * BigInt(bytes.length));
  return Array.from({ length: size / 8 }, (_, index) => view.getBigUint64(8 * index));
}

function compressed(state, block) {
  const w = schedule(block);
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 80; i++) {
    const first = h + (turn(e, 14n) ^ turn(e, 18n) ^ turn(e, 41n)) + ((e & f) ^ (~e & MASK & g)) + ROUND[i] + w[i];
    const second = (turn(a, 28n) ^ turn(a, 34n) ^ turn(a, 39n)) + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) & MASK, c, b, a, (first + second) & MASK];
  }
  return [a, b, c, d, e, f, g, h].map((word, index) => (state[index] + word) & MASK);
}

function schedule(block) {
  const w = [...block];
  for (let i = 16; i < 80; i++) {
    const low = turn(w[i - 15], 1n) ^ turn(w[i - 15], 8n) ^ (w[i - 15] >> 7n);
    const high = turn(w[i - 2], 19n) ^ turn(w[i - 2], 61n) ^ (w[i - 2] >> 6n);
    w.push((w[i - 16] + low + w[i - 7] + high) & MASK);
  }
  return w;
}

function turn(word, by) {
  return (word >> by) | ((word << (64n - by)) & MASK);
}

/** The first 64 fractional bits of the square roots of the 9th to 16th prime and of the cube roots of 80 primes. */
function constants() {
  const primes = [];
  for (let n = 2; primes.length < 80; n++) if (primes.every((prime) => n % prime)) primes.push(n);
  const bits = (prime, power) => root(BigInt(prime) << BigInt(64 * power), BigInt(power)) & MASK;
  return [primes.slice(8, 16).map((prime) => bits(prime, 2)), primes.map((prime) => bits(prime, 3))];
}

/** The integer part of a root, by bisection. */
function root(value, power) {
  let [low, high] = [0n, 1n << 72n];
  while (high - low > 1n) {
    const middle = (low + high) / 2n;
    [low, high] = middle ** power <= value ? [middle, high] : [low, middle];
  }
  return low;
}
