/**
 * Randomness on the device: a stream of bytes and exact draws from it, read from front to back:
 *
 *   below(n)   k = the fewest bytes that hold n - 1; read k bytes, big endian, as x; if x >= n * floor(256**k / n)
 *              discard them and read k more; else x mod n. Nothing is read if n is 1.
 *   coin(c)    six bytes, big endian, as x: heads where x < c. Its probability is exactly c / 2**48.
 *
 * A source has take(count), the next bytes. All numbers here are whole and at most 2**48: exact as doubles.
 */

export const COIN_BYTES = 6;
export const WHOLE = 2 ** 48;

/** The browser's cryptographic generator, which clients use. */
export class SystemBytes {
  take(count) {
    return crypto.getRandomValues(new Uint8Array(count));
  }
}

/** An integer from 0 .. bound-1, all equally likely, exactly (rejection, no modulo bias). */
export function below(bound, source) {
  if (!(bound >= 1 && bound <= WHOLE)) throw new RangeError("The bound must be from 1 to 2**48.");
  let [size, reach] = [0, 1];
  while (reach < bound) [size, reach] = [size + 1, reach * 256];
  const last = reach - (reach % bound);
  for (;;) {
    const drawn = bigEndian(source.take(size));
    if (drawn < last) return drawn % bound;
  }
}

/** The same for a bound of any size; bound and result are BigInts. */
export function belowBig(bound, source) {
  let [size, reach] = [0, 1n];
  while (reach < bound) [size, reach] = [size + 1, reach * 256n];
  const last = reach - (reach % bound);
  for (;;) {
    const number = source.take(size).reduce((total, byte) => total * 256n + BigInt(byte), 0n);
    if (number < last) return number % bound;
  }
}

/** A coin of probability exactly heads / 2**48. */
export function coin(heads, source) {
  return drawWhole(source) < heads;
}

/** An integer from 0 .. 2**48-1. */
export function drawWhole(source) {
  return bigEndian(source.take(COIN_BYTES));
}

function bigEndian(bytes) {
  return bytes.reduce((number, byte) => number * 256 + byte, 0);
}
