// A collection: incoming reports, and estimates from them.

import { show as showChart } from "./chart.js";
import { showCode } from "./code.js";
import { distribution } from "./collect_distribution.js";
import { rules } from "./collect_rules.js";
import { live } from "./live.js";
import { quietly, tell, view } from "./api.js";
import { trees } from "./tree.js";

const page = view(), at = (id) => document.getElementById(id);
let state = page.state;

const estimate = distribution(page, () => state);
trees(page);
rules(page);

function watch() {
  return live(2, async () => {
    const { value, error } = await quietly("GET", `${page.at}/state?charts=true`);
    if (value) show(value);
    return !error && !state.closed; // a closed collection does not change
  });
}

function show(newState) {
  const first = !state.reports && newState.reports;
  state = newState;
  at("reports").textContent = state.reports.toLocaleString("en");
  at("waiting").textContent = state.waiting ? `${state.waiting.toLocaleString("en")} or more` : `fewer than ${state.at_least.toLocaleString("en")}`;
  at("state").textContent = state.closed ? "closed" : "open";
  at("nothing").hidden = state.reports > 0;
  at("found").hidden = !state.reports;
  if (newState.charts) showChart("arriving", newState.charts.counted);
  if (first) estimate();
}

at("closing")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  showCode(page.all_codes.closing);
  const { value, error } = await quietly("POST", `${page.at}/closing`, { version: state.version });
  tell(error);
  if (!value) return;
  show(value);
  at("closing").hidden = true;
  at("closed").textContent = "This collection is closed and accepts no more reports.";
});

showChart("arriving", state.charts.counted);
if (state.reports) estimate();
if (!state.closed) watch();
