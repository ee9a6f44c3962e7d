// Asking while something is changed: not at every stroke, and only the latest answer counts. And the code of a part.

import { showCode } from "./code.js";
import { quietly } from "./talk.js";

const PAUSE = 200; // milliseconds without a change

/** latest(work): call it at every change; work(stillLatest) is done once it has been quiet. */
export function latest(work) {
  let timer = null, number = 0;
  return () => {
    clearTimeout(timer);
    const mine = ++number;
    timer = setTimeout(() => work(() => mine === number), PAUSE);
  };
}

/** Show a part's calculation as code. */
export async function spell(part, calculation) {
  const { value } = await quietly("POST", "/risk/code", calculation);
  if (value) showCode(value, `code-${part}`);
}

export const at = (id) => document.getElementById(id);
export const text = (id) => at(id).value.trim();
export const address = (path, asked) => `${path}?${new URLSearchParams(asked)}`;
