// What is public about finished tables: the promise, a warning about the budget, and what the model counted. It is requested
// when a job's details are opened, and at once for the newest job, whose warning is shown above its details.

import { element, fill, number } from "./elements.js";
import { quietly } from "./api.js";

/** Show the newest job's summary, and that of every job whose details are opened. */
export function showSummaries(base) {
  const newest = document.querySelector("details.learned");
  if (newest) load(base, newest);
}

export function listen(base) {
  document.addEventListener("toggle", (event) => {
    if (event.target.matches?.("details.learned") && event.target.open) load(base, event.target);
  }, true);
}

async function load(base, details) {
  if (details.dataset.loaded) return;
  details.dataset.loaded = "yes";
  const { value, error } = await quietly("GET", `${base}/${details.dataset.job}/tables`);
  const target = details.querySelector('[data-part="learned"]');
  if (value) show(value, details, target);
  else {
    delete details.dataset.loaded;
    target.replaceChildren(element("p", {}, `${error.what} ${error.do ?? ""}`));
  }
}

function show(tables, details, target) {
  const summaries = tables.summary ?? [];
  const banners = [...new Set(summaries.map((summary) => summary?.banner).filter(Boolean))];
  const banner = details.closest("li").querySelector('[data-part="banner"]');
  banner.textContent = banners.map(sentence).join(" ");
  banner.hidden = banners.length === 0;
  target.replaceChildren(
    element("p", {}, `Promise: ${tables.promise}.`),
    ...summaries.filter(Boolean).flatMap((summary, index) => learned(summary, summaries.length > 1 ? index + 1 : 0)),
  );
}

/** What the model of one table learned; keys that an older service does not send are left out. */
function learned(summary, numbered) {
  const pairs = summary.pairs ?? [], maps = summary.maps ?? [], alone = summary.independent ?? [];
  const lines = [
    `${number(pairs.length)} ${pairs.length === 1 ? "pair" : "pairs"} of columns ${pairs.length === 1 ? "was" : "were"} counted.`,
    maps.length ? `Columns that another column determines: ${maps.map(mapText).join("; ")}.` : "No column was found that another column determines.",
    alone.length ? `Drawn independently of all other columns: ${alone.join(", ")}.` : "Every column depends on another one.",
  ];
  const parts = numbered ? [element("h3", {}, `Table ${numbered}`)] : [];
  const list = element("ul", {}, ...lines.map((line) => element("li", {}, line)));
  if (!pairs.length) return [...parts, list];
  const table = element("table");
  fill(table, ["pair", "groups", "noise of a count (sd)"], pairs.map((pair) => [`${pair.left} and ${pair.right}`, (pair.groups ?? []).join(" x "), number(pair.deviation, 3)]));
  return [...parts, list, element("div", { class: "scroll" }, table)];
}

const mapText = (found) => `${found.column} by ${found.by}${found.error ? ` (except in about ${number(100 * found.error, 2)}% of the rows)` : ""}`;
const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!]$/.test(text) ? "" : "."}`;
