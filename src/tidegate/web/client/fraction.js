/**
 * Exact fractions of BigInts. They are reduced only for output: a greatest common divisor of long numbers costs more than
 * it saves.
 */

export class Fraction {
  /** Create a fraction from whole numbers (BigInt or safe Number); the denominator is always above 0. */
  constructor(over, under = 1n) {
    const [n, d] = [BigInt(over), BigInt(under)];
    if (d === 0n) throw new RangeError("a denominator of 0");
    this.n = d < 0n ? -n : n;
    this.d = d < 0n ? -d : d;
  }

  plus(other) {
    const b = fraction(other);
    return this.d === b.d ? new Fraction(this.n + b.n, b.d) : new Fraction(this.n * b.d + b.n * this.d, this.d * b.d);
  }

  minus(other) {
    const b = fraction(other);
    return this.plus(new Fraction(-b.n, b.d));
  }

  times(other) {
    const b = fraction(other);
    return new Fraction(this.n * b.n, this.d * b.d);
  }

  over(other) {
    const b = fraction(other);
    return new Fraction(this.n * b.d, this.d * b.n);
  }

  power(exponent) {
    return new Fraction(this.n ** BigInt(exponent), this.d ** BigInt(exponent));
  }

  /** Return a number below 0, 0, or above 0 if this is below, equal to, or above the other. */
  compare(other) {
    const b = fraction(other);
    const gap = this.n * b.d - b.n * this.d;
    return gap < 0n ? -1 : gap > 0n ? 1 : 0;
  }

  equals(other) {
    return this.compare(other) === 0;
  }

  /** In lowest terms: 7/3, or 2. */
  toString() {
    const [size, common] = [this.n < 0n ? -this.n : this.n, divisor(this.n < 0n ? -this.n : this.n, this.d)];
    const over = `${this.n < 0n ? "-" : ""}${size / common}`;
    return this.d === common ? over : `${over}/${this.d / common}`;
  }

  get whole() {
    return this.n % this.d === 0n;
  }

  floor() {
    return floorDivide(this.n, this.d);
  }

  ceil() {
    return -floorDivide(-this.n, this.d);
  }

  /** The nearest whole number; halves go to the even one. */
  round() {
    const [below, twice] = [this.floor(), 2n * mod(this.n, this.d)];
    const up = twice > this.d || (twice === this.d && below % 2n !== 0n);
    return up ? below + 1n : below;
  }

  /** The nearest double (halves to even), infinite where none is large enough. */
  toNumber() {
    const size = this.n < 0n ? -this.n : this.n;
    if (size === 0n) return 0;
    const shift = BigInt(Math.max(0, 80 - (bitLength(size) - bitLength(this.d))));
    const [top, rest] = [(size << shift) / this.d, (size << shift) % this.d];
    const near = Number(rest ? top | 1n : top); // the last of 80 bits is set if more bits follow
    const scaled = near * 2 ** -Number(shift / 2n) * 2 ** -Number(shift - shift / 2n);
    return this.n < 0n ? -scaled : scaled;
  }
}

export const ZERO = new Fraction(0n);
export const FIRST = new Fraction(1n);

export const fraction = (value) => (value instanceof Fraction ? value : new Fraction(value));
export const sum = (fractions) => fractions.reduce((total, one) => total.plus(one), ZERO);
export const largest = (fractions) => fractions.reduce((most, one) => (one.compare(most) > 0 ? one : most));
export const smallest = (fractions) => fractions.reduce((least, one) => (one.compare(least) < 0 ? one : least));

export function bitLength(value) {
  return value === 0n ? 0 : value.toString(16).length * 4 - Math.clz32(parseInt(value.toString(16)[0], 16)) + 28;
}

function divisor(one, other) {
  while (other) [one, other] = [other, one % other];
  return one;
}

function floorDivide(n, d) {
  return (n - mod(n, d)) / d;
}

function mod(n, d) {
  return ((n % d) + d) % d;
}

/** The number of subsets of size `k` of `n`. */
export function choose(n, k) {
  if (k < 0 || k > n) return 0n;
  let ways = 1n;
  for (let i = 0; i < Math.min(k, n - k); i++) ways = (ways * BigInt(n - i)) / BigInt(i + 1);
  return ways;
}

const DIGITS = String.raw`\d+(?:_\d+)*`;
const WRITTEN = new RegExp(
  String.raw`^\s*([-+]?)(?=\d|\.\d)((?:${DIGITS})?)(?:/(${DIGITS})|(?:\.((?:${DIGITS})?))?(?:e([-+]?\d{1,3}))?)\s*$`,
  "i",
);

/** The exact fraction of a number or a text ("0.05", "1/3", "1e-3"); null if it is not a number. */
export function exact(value) {
  if (typeof value === "bigint") return new Fraction(value);
  if (typeof value !== "number" && typeof value !== "string") return null;
  const found = WRITTEN.exec(String(value));
  if (!found) return null;
  const [sign, digits, under, decimals = "", exponent = "0"] = found.slice(1).map((part) => part?.replaceAll("_", ""));
  if (under !== undefined) return BigInt(under) === 0n ? null : new Fraction(BigInt(sign + digits), BigInt(under));
  const scale = Number(exponent) - decimals.length;
  const whole = BigInt(digits + decimals || "0") * (sign === "-" ? -1n : 1n);
  return scale < 0 ? new Fraction(whole, 10n ** BigInt(-scale)) : new Fraction(whole * 10n ** BigInt(scale));
}
