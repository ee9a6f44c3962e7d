// The cost of a query, as its quote states it.

import { picture } from "./ask_error.js";
import { showCode } from "./code.js";
import { amount, chance, element, number, percent, shortUnit } from "./elements.js";
import { meter } from "./meter.js";

const byId = (id) => document.getElementById(id);
const figure = (name) => document.querySelector(`[data-figure="${name}"]`);

/** The three numbers of a preview; null if a number is not known in advance. */
export function summed(quote) {
  if (!quote) return null;
  const alone = Object.values(quote.identification).map((part) => part.alone);
  const only = quote.expected.length === 1 ? quote.expected[0].error : null;
  return { rho: alone.length ? Math.max(...alone) : null, [quote.unit]: Number(quote.cost), error: only };
}

/** Show a quote; `left` is what the user can spend, and `derive` is called for results that are already known. */
export function showQuote(quote, left, derive) {
  for (const [name, part] of Object.entries(quote.identification)) meter(name, part);
  figure("cost").textContent = quote.answered_before ? "free" : number(quote.cost);
  figure("cost").title = quote.cost;
  figure("part").textContent = quote.answered_before ? "" : `${shortUnit(quote.unit)}, ${percent(Number(quote.cost) / Number(quote.ceiling))} of the limit`;
  figure("left").textContent = number(quote.left);
  figure("after").textContent = quote.fits ? number(quote.left_after) : "over budget";
  figure("yes-no").textContent = `${chance(quote.yes_no.now)} → ${chance(quote.yes_no.after)}`;
  showAtDelta(quote.epsilon_at_delta);
  byId("sentence").textContent = sentence(quote, left);
  picture(quote);
  showCode(quote.code);
  showFree(quote, derive);
}

export function nothingKnown() {
  for (const name of ["cost", "after"]) figure(name).textContent = "…";
  figure("part").textContent = "";
  for (const { dataset } of document.querySelectorAll(".meter")) meter(dataset.meter, { now: Number(dataset.now), ceiling: Number(dataset.ceiling) });
  figure("yes-no").textContent = figure("yes-no").textContent.split(" → ")[0];
  showAtDelta();
  byId("sentence").textContent = "";
  byId("free").hidden = true;
  picture(null);
}

/** Under the average guarantee: epsilon at delta = 1e-6 of the total, now and after the query. */
export function showAtDelta(after = null) {
  const shown = figure("at-delta");
  if (shown) shown.textContent = after === null ? number(shown.dataset.now, 3) : `${number(shown.dataset.now, 3)} → ${number(after, 3)}`;
}

function sentence(quote, left) {
  const listed = quote.expected.map((part) => part.question);
  const questions = listed.length > 3 ? `${listed.length} queries together` : listed.join("; ");
  const start = `${questions.charAt(0).toUpperCase()}${questions.slice(1)}`;
  if (!quote.answered_before) return `${start} would cost ${amount(quote.cost, quote.unit)} of the ${number(left)} remaining.`;
  const when = new Date(quote.answered_before.at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
  return `${start}: answered on ${when}. Showing this answer again is free.`;
}

/** Why the query cannot be run, and what would fit; null if it can. */
export function tooMuch(quote, own) {
  const cost = Number(quote.cost);
  const isShare = own !== null && cost > Number(own) && Number(own) <= Number(quote.left);
  if (isShare) return { what: `The query costs ${amount(cost, quote.unit)}, but your budget share has only ${number(own)} remaining.`, do: fitting(own, quote.unit) };
  if (!quote.fits) return { what: `The query costs ${amount(cost, quote.unit)}, but only ${number(quote.left)} is remaining.`, do: fitting(quote.left, quote.unit) };
  return null;
}

const fitting = (left, unit) => Number(left) > 0 ? `Set ${shortUnit(unit)} to at most ${number(left, 3)}, or allow a larger error.` : "The budget is used up. Earlier answers are still free.";

/** Results derived from earlier answers. */
function showFree(quote, derive) {
  const free = quote.answered_before ? [] : quote.expected.filter((part) => part.free);
  byId("free").hidden = !free.length;
  byId("free").replaceChildren();
  if (!free.length) return;
  const button = element("button", { type: "button", class: "second-choice" }, "Use it (free)");
  button.addEventListener("click", derive);
  byId("free").append(element("p", {}, `Known from earlier answers, free: ${free.map((part) => `${part.question}: ${part.free}`).join("; ")}.`), button);
}
