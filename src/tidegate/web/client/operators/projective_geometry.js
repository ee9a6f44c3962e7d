/**
 * Projective geometry response: a report of about twenty bits about one of up to a million categories.
 *
 * Values and reports are points over a prime field, by their canonical vectors: the first nonzero coordinate is 1. The vector
 * of code i is the base-q number q**j + (i - (q**j - 1) / (q - 1)), for the largest j that fits. A report supports a value if
 * their vectors are orthogonal.
 */

import { WHOLE, below, coin } from "../bits.js";
import { Fraction } from "../fraction.js";
import { ONE, expBelow } from "../powers.js";
import { FULL, forValues } from "./tables.js";

const MOST_VECTORS = 2 ** 26;

export function projectiveGeometry({ size: values, parameters }) {
  const power = expBelow(parameters.epsilon);
  const [prime, dimension] = bestSpace(values, power);
  const [points, inHyperplane] = [pointCount(prime, dimension), pointCount(prime, dimension - 1)];
  const odds = (power - ONE) * BigInt(inHyperplane);
  const keep = (FULL * odds) / (BigInt(points) * ONE + odds);
  const space = { prime, dimension };
  // P(report | value) over 2**48 * points * inHyperplane
  const outside = (BigInt(WHOLE) - keep) * BigInt(inHyperplane);
  const inside = outside + keep * BigInt(points);
  const common = BigInt(pointCount(prime, dimension - 2));
  const all = FULL * BigInt(points) * BigInt(inHyperplane);
  const p = new Fraction(inside * BigInt(inHyperplane), all);
  const q = new Fraction(inside * common + outside * (BigInt(inHyperplane) - common), all);
  const supportOf = (report) => {
    const vector = vectorOf(report, space);
    return (value) => dot(vector, vectorOf(value, space)) % prime === 0;
  };
  return {
    values,
    reportSize: points,
    ordered: false,
    p,
    q,
    supports: (report, value) => supportOf(report)(value),
    sample: (value, source) => {
      if (!coin(Number(keep), source)) return below(points, source);
      const free = digits(1 + below(prime ** (dimension - 1) - 1, source), prime, dimension - 1);
      const own = vectorOf(value, space);
      const lead = own.indexOf(1); // all coordinates before it are 0
      const rest = dot(free.slice(lead), own.slice(lead + 1)) % prime;
      return pointOf([...free.slice(0, lead), (prime - rest) % prime, ...free.slice(lead)], prime);
    },
    repeated: (answer) => answer,
    supportedCount: (report) => supportedCount(report, values, space),
    weights: (report) => {
      const isSupported = supportOf(report);
      return forValues(values, (value) => (isSupported(value) ? inside : outside));
    },
    likeliest: (report) => {
      const ties = supportedCount(report, values, space);
      if (!ties) return { best: 0, ties: values, chance: new Fraction(1n, values) };
      const isSupported = supportOf(report);
      let best = 0;
      while (!isSupported(best)) best++;
      return { best, ties, chance: new Fraction(inside, BigInt(ties) * inside + BigInt(values - ties) * outside) };
    },
    lifetimeGamma: () => new Fraction(inside, outside),
    recipe: () => ({ draw: "projective-geometry", values, prime, dimension, keep: Number(keep) }),
  };
}

const pointCount = (prime, dimension) => (dimension > 0 ? (prime ** dimension - 1) / (prime - 1) : 0);
const dot = (one, other) => one.reduce((total, coordinate, place) => total + coordinate * other[place], 0);

/** The last `count` digits of a number, the most significant first. */
function digits(number, base, count) {
  const list = [];
  for (let rest = number; list.length < count; rest = Math.floor(rest / base)) list.unshift(rest % base);
  return list;
}

function vectorOf(point, { prime, dimension }) {
  let [size, start] = [1, 0];
  while (start + size <= point) [start, size] = [start + size, size * prime];
  return digits(size + point - start, prime, dimension);
}

function pointOf(vector, prime) {
  const inverse = inverseOf(vector.find((coordinate) => coordinate), prime);
  const number = vector.reduce((total, coordinate) => total * prime + ((coordinate * inverse) % prime), 0);
  let [size, start] = [1, 0];
  while (size * prime <= number) [start, size] = [start + size, size * prime];
  return start + number - size;
}

function inverseOf(number, prime) {
  let [power, result] = [number % prime, 1];
  for (let exponent = prime - 2; exponent > 0; exponent = Math.floor(exponent / 2)) {
    if (exponent % 2) result = (result * power) % prime;
    power = (power * power) % prime;
  }
  return result;
}

/** The number of values that a report supports, without looking at each: only the zeros at its end and one product matter. */
function supportedCount(report, values, { prime, dimension }) {
  let [levels, size, whole] = [0, 1, values];
  while (whole >= size && levels < dimension) [whole, size, levels] = [whole - size, size * prime, levels + 1];
  const [vector, prefix] = [vectorOf(report, { prime, dimension }), digits(whole, prime, dimension)];
  const zeros = [...vector].reverse().findIndex((coordinate) => coordinate);
  const last = dimension - 1 - zeros;
  const digit = prefix[last];
  let count = 0;
  for (let level = 0; level < levels; level++) {
    if (level < zeros) count += prime ** level;
    else if (level > zeros) count += prime ** (level - 1);
  }
  if (zeros >= levels) return count + (zeros > levels ? whole : 0);
  if (levels < dimension) prefix[dimension - 1 - levels] = 1;
  const product = dot(vector.slice(0, last), prefix) % prime;
  const chosen = ((prime - product) * inverseOf(vector[last], prime)) % prime;
  count += Math.floor(whole / prime ** (zeros + 1)) * prime ** zeros;
  if (chosen < digit) return count + prime ** zeros;
  return count + (chosen === digit ? whole % prime ** zeros : 0);
}

/** The prime and the smallest dimension that fits, with the least variance; the space has at most 2**26 vectors. */
function bestSpace(values, power) {
  let best = null;
  for (let prime = 2; prime ** 2 <= MOST_VECTORS; prime++) {
    if (!isPrime(prime)) continue;
    let dimension = 2;
    while (pointCount(prime, dimension) < values) dimension++;
    if (prime ** dimension > MOST_VECTORS) continue;
    const variance = varianceOf(prime, dimension, power);
    if (best === null || variance.compare(best.variance) < 0) best = { variance, prime, dimension };
  }
  return [best.prime, best.dimension];
}

/** A number proportional to the variance of a rare value's share. */
function varianceOf(prime, dimension, power) {
  const [inside, common] = [BigInt(pointCount(prime, dimension - 1)), BigInt(pointCount(prime, dimension - 2))];
  const total = BigInt(pointCount(prime, dimension)) * ONE + (power - ONE) * inside;
  const wrong = power * common + (inside - common) * ONE;
  return new Fraction(wrong * (total - wrong), (inside - common) ** 2n);
}

function isPrime(number) {
  for (let divisor = 2; divisor * divisor <= number; divisor++) if (number % divisor === 0) return false;
  return true;
}
