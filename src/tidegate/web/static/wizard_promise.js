// The promise of a draft: a slider beside its number, and what the promise means while it changes.

import { chance, element, number, shortUnit } from "./elements.js";
import { fieldError } from "./field_errors.js";

const byId = (id) => document.getElementById(id);
const READINGS = { "worst-case": "for every response", average: "on average over the noise" };

/** Show the meaning of a promise that can be kept; otherwise the problem at its field. */
export function showMeaning(promise, problems) {
  const section = byId("meaning");
  if (!section) return;
  for (const id of ["one_in", "epsilon"]) if (byId(id)) fieldError(byId(id), problems[id] ?? null);
  section.replaceChildren(...(promise ? meaningOf(promise) : [element("p", { class: "quiet" }, "What the promise means is shown once it can be kept.")]));
}

function meaningOf(promise) {
  const rows = Object.entries(promise.readings).map(([name, reading]) => element("tr", {},
    element("th", { scope: "row" }, READINGS[name]),
    element("td", { class: "number" }, `${shortUnit(reading.unit)} ${number(reading.budget)}`),
    element("td", { class: "number" }, chance(reading.yes_no), ...(reading.is_weak ? [" ", element("strong", { class: "weak" }, "weak")] : []))));
  const heads = [["reading"], ["total budget", "number"], ["yes/no certainty", "number"]];
  const head = element("tr", {}, ...heads.map(([name, kind]) => element("th", { scope: "col", class: kind ?? "" }, name)));
  const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
  const warnings = promise.warnings.map((finding) => element("div", { class: "warning" },
    element("p", {}, element("strong", {}, `Warning: ${finding.about}. `), finding.says), element("p", {}, finding.do)));
  return [
    element("p", { class: "good" }, promise.says),
    element("div", { class: "scroll" }, table),
    element("p", { class: "quiet small" }, "The yes/no certainty is how sure an adversary can become of a yes/no fact about one person after the whole budget is spent; a coin flip has 0.5."),
    ...warnings,
  ];
}

/** The largest number that a random guess of every chosen column allows. */
function most() {
  const chosen = [...document.querySelectorAll('input[name="protect"]:checked')].map((box) => Number(box.dataset.most));
  return Math.max(2, Math.min(100, ...chosen));
}

const slider = byId("one_in-slider");
if (slider) {
  slider.hidden = false;
  slider.max = most();
  slider.addEventListener("input", () => { byId("one_in").value = slider.value; });
  byId("one_in").addEventListener("input", () => { slider.value = byId("one_in").value; });
  byId("protect").addEventListener("input", () => { slider.max = most(); });
}
