/** Reading a published description: missing, unknown and mistyped keys are refused. */

import { exact } from "./fraction.js";
import { Refused } from "./refused.js";

/** Read the values of a table's keys: all of `needed`, any of `allowed`, and nothing else. */
export function taken(content, where, needed, allowed = {}) {
  if (content === null || typeof content !== "object" || Array.isArray(content)) {
    throw new Refused(`${where || "The description"} must be a table of keys.`);
  }
  const readers = new Map(Object.entries({ ...needed, ...allowed }));
  for (const key of Object.keys(content)) {
    if (!readers.has(key)) throw new Refused(`${path(where, key)} is an unknown key.`);
  }
  for (const key of Object.keys(needed)) {
    if (!Object.hasOwn(content, key)) throw new Refused(`${path(where, key)} is missing.`);
  }
  const read = Object.entries(content).map(([key, value]) => [key, readers.get(key)(value, path(where, key))]);
  return Object.fromEntries(read);
}

const path = (where, key) => (where ? `${where}.${key}` : key);
const refuse = (where, says) => {
  throw new Refused(`${where}: ${says} is required.`);
};

export const text = (value, where) => (typeof value === "string" ? value : refuse(where, "text"));
export const whole = (value, where) => (Number.isSafeInteger(value) ? value : refuse(where, "a whole number"));
export const yesOrNo = (value, where) => (typeof value === "boolean" ? value : refuse(where, "true or false"));
export const number = (value, where) => exact(value) ?? refuse(where, "a finite number");
export const oneOf = (choices) => (value, where) =>
  choices.includes(value) ? value : refuse(where, `one of ${choices.join(", ")}`);
export const list = (read) => (value, where) =>
  Array.isArray(value) ? value.map((item, place) => read(item, `${where}[${place}]`)) : refuse(where, "a list");
