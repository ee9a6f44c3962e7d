// A collection: reports as they arrive, and what they say about everybody.

import { chart, colour } from "./chart.js";
import { showCode } from "./code.js";
import { distribution } from "./collect_distribution.js";
import { rules } from "./collect_rules.js";
import { live } from "./live.js";
import { quietly, tell, view } from "./talk.js";
import { trees } from "./tree.js";

const page = view(), at = (id) => document.getElementById(id);
const seen = [[new Date(), page.state.reports]], MOST_POINTS = 600;
let state = page.state;

const estimate = distribution(page, () => state);
trees(page);
rules(page);

function watch() {
  return live(2, async () => {
    const { value, error } = await quietly("GET", `${page.at}/state`);
    if (value) show(value);
    return !error && !state.closed; // a closed one changes no more
  });
}

function show(found) {
  const first = !state.reports && found.reports;
  state = found;
  at("reports").textContent = state.reports.toLocaleString("en");
  at("waiting").textContent = state.waiting ? `${state.waiting.toLocaleString("en")} or more` : `fewer than ${state.at_least.toLocaleString("en")}`;
  at("state").textContent = state.closed ? "closed" : "open";
  at("nothing").hidden = state.reports > 0;
  at("found").hidden = !state.reports;
  seen.push([new Date(), state.reports]);
  if (seen.length > MOST_POINTS) seen.splice(1, 1);
  arriving();
  if (first) estimate();
}

function arriving() {
  const came = seen.at(-1)[1] - seen[0][1], seconds = Math.round((seen.at(-1)[0] - seen[0][0]) / 1000);
  const low = seen[0][1], high = Math.max(seen.at(-1)[1], low + 10);
  const since = seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  chart("arriving", {
    title: came ? `${came.toLocaleString("en")} ${came === 1 ? "report" : "reports"} ${came === 1 ? "was" : "were"} counted since this page was opened, ${since} ago` : "No report was counted since this page was opened",
    traces: () => [{ x: seen.map(([when]) => when), y: seen.map(([, many]) => many), mode: "lines", line: { shape: "hv", color: colour("accent"), width: 2 } }],
    layout: { height: 200, margin: { l: 56, r: 12, t: 8, b: 36 }, xaxis: { type: "date", tickformat: "%H:%M:%S", nticks: 4 }, yaxis: { title: { text: "reports" }, tickformat: ",d", nticks: 5, range: [low, high + (high - low) / 20] } },
    table: { columns: ["at", "reports"], rows: seen.filter((one, place) => !place || one[1] !== seen[place - 1][1]).map(([when, many]) => [when.toLocaleTimeString("en-GB"), many]) },
  });
}

at("closing")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  showCode(page.all_codes.closing);
  const { value, error } = await quietly("POST", `${page.at}/closing`, { version: state.version });
  tell(error);
  if (!value) return;
  show(value);
  at("closing").hidden = true;
  at("closed").textContent = "It is closed: it takes no more reports.";
});

arriving();
if (state.reports) estimate();
if (!state.closed) watch();
