// The quality of synthetic tables compared with the original: requested once, shown as text, tables and charts.

import { show as showChart } from "./chart.js";
import { element, fill, number, percent } from "./elements.js";
import { timed } from "./live.js";
import { quietly, tell, view } from "./api.js";

const WORST = 12; // pairs shown
const given = view();
const at = (id) => document.getElementById(id);
const share = (part) => (part === null ? "–" : percent(part, 2));
const items = (texts) => texts.map((text) => element("li", {}, text));

const address = (column = "") => `${given.at}?${new URLSearchParams({ charts: true, column })}`;

async function ask() {
  const work = () => quietly("GET", address());
  const { value, error } = await timed(at("wait"), "Comparing with the original (some seconds for 10,000 rows)", work);
  tell(error);
  at("wait").textContent = error ? "The comparison failed." : sizes(value.rows);
  if (value) show(value);
}

function sizes({ original, synthetic }) {
  const made = synthetic.length === 1 ? "one table" : `${synthetic.length} tables`;
  return `${made[0].toUpperCase()}${made.slice(1)} of ${number(synthetic[0])} rows, compared with ${number(original)} original rows.`;
}

function show(found) {
  at("found").hidden = false;
  at("findings").replaceChildren(...items(found.findings));
  at("notes").replaceChildren(...items(found.notes));
  showSeparation(found.separation);
  showMargins(found.margins, found.charts);
  showPairs(found.pairs);
  if (found.regression) showRegression(found.regression);
}

function showSeparation(kinds) {
  const rows = kinds.map((one) => [one.kind, number(one.pmse, 2), number(one.null.mean, 2), one.ratio === null ? "–" : `${number(one.ratio, 3)} times chance`, number(one.largest_possible, 2)]);
  fill(at("separation"), ["model", "pMSE", "by chance", "ratio", "largest possible"], rows);
  at("separation-reads").replaceChildren(...kinds.map((one) => element("p", {}, element("strong", {}, `${one.kind}. `), one.reads)));
}

function showMargins({ columns, reads }, charts) {
  const sorted = [...columns].sort((a, b) => (b.total_variation ?? 0) - (a.total_variation ?? 0));
  showChart("distances", charts.distances);
  showChart("margin", charts.margin);
  at("margin-reads").textContent = reads;
  at("column").replaceChildren(...sorted.map((one) => element("option", {}, one.column)));
  at("column").onchange = showMargin;
}

async function showMargin() {
  const column = at("column").value;
  const { value, error } = await quietly("GET", address(column));
  tell(error);
  if (value && column === at("column").value) showChart("margin", value.charts.margin);
}

function showPairs({ pairs, reads }) {
  at("pairs-part").hidden = pairs.length === 0;
  const sorted = [...pairs].sort((a, b) => (b.total_variation ?? 0) - (a.total_variation ?? 0)).slice(0, WORST);
  const rows = sorted.map((one) => [one.columns.join(" and "), share(one.total_variation), share(one.expected_by_chance), `${number(one.cramers_v.original, 2)} → ${number(one.cramers_v.synthetic, 2)}`]);
  fill(at("pairs"), ["pair", "differs", "by chance", "association, original → synthetic"], rows);
  at("pair-reads").textContent = reads;
}

function showRegression(found) {
  at("regression-part").hidden = false;
  at("formula").textContent = `${found.formula} (${found.kind}): the intervals overlap by ${found.mean_interval_overlap === null ? "–" : number(found.mean_interval_overlap, 2)} on average.`;
  const told = (one) => (one ? `${number(one.estimate, 3)} (${number(one.low, 3)} to ${number(one.high, 3)})` : "–");
  const rows = found.coefficients.map((one) => [one.name, told(one.original), told(one.synthetic), one.interval_overlap === null ? "–" : number(one.interval_overlap, 2)]);
  fill(at("regression"), ["coefficient", "original", "synthetic", "overlap"], rows);
  at("regression-reads").textContent = found.reads;
}

ask();
