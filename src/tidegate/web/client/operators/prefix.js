/**
 * Prefix response: a free text of 64 bits. A person draws one of 15 public prefix lengths and reports the prefix of this length by
 * projective geometry response, in a space that is never written down. A code is a BigInt.
 *
 * A report is a set of bits: bit l for the length number l, then `width` bits for every coordinate of the point's canonical vector,
 * least significant bit first.
 */

import { below, belowBig, coin } from "../bits.js";
import { Fraction, sum } from "../fraction.js";
import { ONE, expBelow } from "../powers.js";
import { say } from "../text.js";
import { FULL } from "./tables.js";

const BITS = 64;
const LENGTHS = [...Array.from({ length: 14 }, (_, index) => 10 + 4 * index), BITS];
const LARGEST_PRIME = 251;

export function prefix({ parameters }) {
  const power = expBelow(parameters.epsilon);
  const prime = bestPrime(power);
  const width = (prime - 1).toString(2).length;
  const levels = LENGTHS.map((length) => levelOf(length, prime, power));
  const gamma = levels.map(({ ratio }) => ratio).reduce((one, other) => (one.compare(other) < 0 ? other : one));
  const written = (index, point) => [
    index,
    ...point.flatMap((coordinate, position) => {
      const places = Array.from({ length: width }, (_, bit) => bit).filter((bit) => (coordinate >> bit) & 1);
      return places.map((bit) => LENGTHS.length + position * width + bit);
    }),
  ];
  return {
    values: null,
    reportSize: LENGTHS.length + levels.at(-1).dimension * width,
    ordered: false,
    texts: true,
    sample: (value, source) => {
      const index = below(LENGTHS.length, source);
      const { length, dimension, points, keep } = levels[index];
      if (!coin(Number(keep), source)) return written(index, vectorOf(belowBig(points, source), prime, dimension));
      const own = digits(value >> BigInt(BITS - length), prime, dimension - 1);
      const free = digits(1n + belowBig(BigInt(prime) ** BigInt(dimension - 1) - 1n, source), prime, dimension - 1);
      const product = free.reduce((total, coordinate, place) => total + coordinate * own[place], 0) % prime;
      return written(index, canonical([(prime - product) % prime, ...free], prime));
    },
    repeated: (answer) => answer,
    sentWords: (report) => {
      const [index, ...bits] = report;
      const point = Array.from({ length: levels[index].dimension }, () => 0);
      for (const bit of bits) {
        const place = bit - LENGTHS.length;
        point[Math.floor(place / width)] |= 1 << (place % width);
      }
      return `the numbers ${point.join(" ")} about the first ${LENGTHS[index]} of ${BITS} bits of your text`;
    },
    concluded: () => {
      const share = sum(levels.map(({ p }) => p)).over(levels.length);
      return (
        `The number of bits was drawn at random. A report fits your text with probability ${say(share, 2)}; from it no odds between ` +
        `two texts change more than ${say(gamma)} times.`
      );
    },
    lifetimeGamma: () => gamma,
    recipe: () => {
      const parts = levels.map(({ length, dimension, keep }) => ({ length, dimension, keep: Number(keep) }));
      return { draw: "prefix", prime, width, levels: parts };
    },
  };
}

/** One prefix length: the dimension of its space, and the probability of a point of the hyperplane. */
function levelOf(length, prime, power) {
  let dimension = 2;
  while (BigInt(prime) ** BigInt(dimension - 1) < 1n << BigInt(length)) dimension++;
  const [points, hyperplane] = [pointCount(prime, dimension), pointCount(prime, dimension - 1)];
  const odds = (power - ONE) * hyperplane;
  const keep = (FULL * odds) / (points * ONE + odds);
  // P(report | value) over 2**48 * points * hyperplane
  const outside = (FULL - keep) * hyperplane;
  const inside = outside + keep * points;
  return { length, dimension, points, keep, ratio: new Fraction(inside, outside), p: new Fraction(inside, FULL * points) };
}

const pointCount = (prime, dimension) => (BigInt(prime) ** BigInt(dimension) - 1n) / BigInt(prime - 1);

/** The last `count` digits of a BigInt, the most significant first. */
function digits(number, base, count) {
  const list = [];
  for (let rest = number; list.length < count; rest /= BigInt(base)) list.unshift(Number(rest % BigInt(base)));
  return list;
}

function vectorOf(point, prime, dimension) {
  let [size, start] = [1n, 0n];
  while (start + size <= point) [start, size] = [start + size, size * BigInt(prime)];
  return digits(size + point - start, prime, dimension);
}

function canonical(vector, prime) {
  const lead = vector.find((coordinate) => coordinate);
  let inverse = 1;
  while ((inverse * lead) % prime !== 1) inverse++;
  return vector.map((coordinate) => (coordinate * inverse) % prime);
}

/** The prime with the least variance in a large space, (g + q - 1)**2 / (q - 1). */
function bestPrime(power) {
  const score = (prime) => (power + BigInt(prime - 1) * ONE) ** 2n;
  let best = 2;
  for (let prime = 3; prime <= LARGEST_PRIME; prime += 2) {
    if (isPrime(prime) && score(prime) * BigInt(best - 1) < score(best) * BigInt(prime - 1)) best = prime;
  }
  return best;
}

function isPrime(number) {
  for (let divisor = 3; divisor * divisor <= number; divisor += 2) if (number % divisor === 0) return false;
  return true;
}
