// The cost of a query, as its quote states it.

import { picture } from "./ask_error.js";
import { showCode } from "./code.js";
import { chance, element, number } from "./elements.js";
import { meter } from "./meter.js";

const place = (id) => document.getElementById(id);
const figure = (name) => document.querySelector(`[data-figure="${name}"]`);

/** The three numbers of a preview; null if a number is not known in advance. */
export function summed(told) {
  if (!told) return null;
  const alone = Object.values(told.identification).map((one) => one.alone);
  const only = told.expected.length === 1 ? told.expected[0].error : null;
  return { rho: alone.length ? Math.max(...alone) : null, epsilon: Number(told.cost), error: only };
}

/** Show a quote; `derive` is called for results that are already known. */
export function showQuote(told, derive) {
  for (const [name, one] of Object.entries(told.identification)) meter(name, one);
  figure("cost").textContent = told.answered_before ? "free" : number(told.cost);
  figure("cost").title = told.cost;
  figure("left").textContent = number(told.left);
  figure("after").textContent = told.fits ? number(told.left_after) : "over budget";
  figure("yes-no").textContent = `${chance(told.yes_no.now)} → ${chance(told.yes_no.after)}`;
  place("sentence").textContent = sentence(told);
  picture(told);
  showCode(told.code);
  showFree(told, derive);
}

export function nothingKnown() {
  for (const name of ["cost", "after"]) figure(name).textContent = "…";
  for (const { dataset } of document.querySelectorAll(".meter")) meter(dataset.meter, { now: Number(dataset.now), ceiling: Number(dataset.ceiling) });
  figure("yes-no").textContent = figure("yes-no").textContent.split(" → ")[0];
  place("sentence").textContent = "";
  place("free").hidden = true;
  picture(null);
}

function sentence(told) {
  const asked = told.expected.map((one) => one.question).join("; ");
  const start = `${asked.charAt(0).toUpperCase()}${asked.slice(1)}`;
  if (!told.answered_before) return `${start} would cost ${number(told.cost)} of the ${number(told.left)} remaining.`;
  const when = new Date(told.answered_before.at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
  return `${start}: answered on ${when}. Showing this answer again is free.`;
}

/** Why the query cannot be run, and what would fit; null if it can. */
export function tooMuch(told, own) {
  const cost = Number(told.cost);
  if (!told.fits) return { what: `The query costs ${number(cost)}, but only ${number(told.left)} is remaining.`, do: fitting(told.left) };
  if (own !== null && cost > Number(own)) return { what: `The query costs ${number(cost)}, but your budget share has only ${number(own)} remaining.`, do: fitting(own) };
  return null;
}

const fitting = (left) => Number(left) > 0 ? `Set epsilon to at most ${number(left, 3)}, or allow a larger error.` : "The budget is used up. Earlier answers are still free.";

/** Results derived from earlier answers. */
function showFree(told, derive) {
  const free = told.answered_before ? [] : told.expected.filter((one) => one.free);
  place("free").hidden = !free.length;
  place("free").replaceChildren();
  if (!free.length) return;
  const button = element("button", { type: "button", class: "second-choice" }, "Use it (free)");
  button.addEventListener("click", derive);
  place("free").append(element("p", {}, `Known from earlier answers, free: ${free.map((one) => `${one.question}: ${one.free}`).join("; ")}.`), button);
}
