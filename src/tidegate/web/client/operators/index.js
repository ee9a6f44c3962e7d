/**
 * Operators by name. Each is created from a question of the published description alone, and has
 *
 *   values, reportSize, ordered      the numbers of values and reports; whether they have an order
 *   sample(code, source)             the permanent answer to a value: a code, or a list of codes
 *   repeated(answer, source)         a fresh report of it if there is a second layer; else the same
 *   drawSeed(source)                 optional: the seed of a device, drawn once
 *   memoryCode(code, seed)           with a seed: what a permanent answer belongs to
 *   samplePermanent(memoryCode, source)   with a seed: the permanent answer
 *   supportedCount(report)           optional: how many values a report supports, if it is not one value or a list
 *   p, q                             of categories and options: the probability that a report supports the true one, and another
 *   supports(report, value)          of categories and options: whether a report supports a value or an option
 *   weights(report)                  integers (BigInt) proportional to P(report | value), value by value
 *   likeliest(report)                optional: the first of the likeliest values, how many there are, and their probability
 *   lifetimeGamma()                  the largest ratio of those over all reports of one value; null if unlimited
 *   sentWords(report, words)         of chosen options: the report as text; `words` has the name of each option
 *   concluded()                      of chosen options: what the holder can conclude, as a sentence
 *   recipe()                         the integers of its draws, over 2**48
 */

import { cutAndPaste, mask, selectASize } from "./baskets.js";
import { oneOption, privset } from "./choices.js";
import { gaussianNoise } from "./gaussian.js";
import { hashResponse } from "./hash_response.js";
import { hybrid } from "./hybrid.js";
import { laplaceNoise } from "./laplace.js";
import { prefix } from "./prefix.js";
import { projectiveGeometry } from "./projective_geometry.js";
import { randomizedResponse } from "./response.js";
import { squareWave } from "./square_wave.js";
import { subset } from "./subset.js";
import { unary } from "./unary.js";
import { uniformNoise } from "./uniform.js";

const OPERATORS = {
  "uniform-noise": uniformNoise,
  "gaussian-noise": gaussianNoise,
  "laplace-noise": laplaceNoise,
  "square-wave": squareWave,
  hybrid,
  "randomized-response": randomizedResponse,
  unary,
  subset,
  "projective-geometry": projectiveGeometry,
  "hash-response": hashResponse,
  "select-a-size": selectASize,
  "cut-and-paste": cutAndPaste,
  mask,
  privset,
  "one-option": oneOption,
  prefix,
};

/** Create the operator of a question, with the integers that follow from its parameters. */
export function operatorFor(question) {
  return OPERATORS[question.operator](question);
}
