// Requests while the user types: after a pause, and only the latest response counts. And the code snippets of a part.

import { showCode } from "./code.js";
import { quietly } from "./api.js";

const PAUSE = 200; // milliseconds without a change

/** latest(work): call the result at every change; work(stillLatest) runs after a pause. */
export function latest(work) {
  let timer = null, number = 0;
  return () => {
    clearTimeout(timer);
    const mine = ++number;
    timer = setTimeout(() => work(() => mine === number), PAUSE);
  };
}

/** Show the code snippet of a part's calculation. */
export async function spell(part, calculation) {
  const { value } = await quietly("POST", "/v1/risk/code", calculation);
  if (value) showCode(value, `code-${part}`);
}

export const at = (id) => document.getElementById(id);
export const text = (id) => at(id).value.trim();
export const address = (path, asked) => `${path}?${new URLSearchParams(asked)}`;
