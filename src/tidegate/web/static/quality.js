// The quality of synthetic tables compared with the original: requested once, shown as text, tables and charts.

import { show as showChart } from "./chart.js";
import { element, fill, number, percent } from "./elements.js";
import { timed } from "./live.js";
import { quietly, tell, view } from "./api.js";

const WORST = 12; // pairs shown
const page = view();
const at = (id) => document.getElementById(id);
const share = (part) => (part === null ? "–" : percent(part, 2));
const items = (texts) => texts.map((text) => element("li", {}, text));

const address = (column = "") => `${page.at}?${new URLSearchParams({ charts: true, column })}`;

async function ask() {
  const work = () => quietly("GET", address());
  const { value, error } = await timed(at("wait"), "Comparing with the original (some seconds for 10,000 rows)", work);
  tell(error);
  at("wait").textContent = error ? "The comparison failed." : sizes(value.rows);
  if (value) show(value);
}

function sizes({ original, synthetic }) {
  const tables = synthetic.length === 1 ? "one table" : `${synthetic.length} tables`;
  return `${tables[0].toUpperCase()}${tables.slice(1)} of ${number(synthetic[0])} rows, compared with ${number(original)} original rows.`;
}

function show(quality) {
  at("found").hidden = false;
  at("findings").replaceChildren(...items(quality.findings));
  at("notes").replaceChildren(...items(quality.notes));
  showSeparation(quality.separation);
  showMargins(quality.margins, quality.charts);
  showPairs(quality.pairs);
  if (quality.regression) showRegression(quality.regression);
}

function showSeparation(kinds) {
  const rows = kinds.map((item) => [item.kind, number(item.pmse, 2), number(item.bootstrap, 2), item.ratio === null ? "–" : `${number(item.ratio, 3)} times`, number(item.largest_possible, 2)]);
  fill(at("separation"), ["classifier", "pMSE", "bootstrap of the original", "ratio", "largest possible"], rows);
  at("separation-reads").replaceChildren(...kinds.map((item) => element("p", {}, element("strong", {}, `${item.kind}. `), item.reads)));
}

function showMargins({ columns, reads }, charts) {
  const sorted = [...columns].sort((a, b) => (b.total_variation ?? 0) - (a.total_variation ?? 0));
  showChart("distances", charts.distances);
  showChart("margin", charts.margin);
  at("margin-reads").textContent = reads;
  at("column").replaceChildren(...sorted.map((item) => element("option", {}, item.column)));
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
  const rows = sorted.map((item) => [item.columns.join(" and "), share(item.total_variation), share(item.expected_by_chance), `${number(item.cramers_v.original, 2)} → ${number(item.cramers_v.synthetic, 2)}`]);
  fill(at("pairs"), ["pair", "differs", "by chance", "association, original → synthetic"], rows);
  at("pair-reads").textContent = reads;
}

function showRegression(quality) {
  at("regression-part").hidden = false;
  at("formula").textContent = `${quality.formula} (${quality.kind}): the intervals overlap by ${quality.mean_interval_overlap === null ? "–" : number(quality.mean_interval_overlap, 2)} on average.`;
  const intervalOf = (item) => (item ? `${number(item.estimate, 3)} (${number(item.low, 3)} to ${number(item.high, 3)})` : "–");
  const rows = quality.coefficients.map((item) => [item.name, intervalOf(item.original), intervalOf(item.synthetic), item.interval_overlap === null ? "–" : number(item.interval_overlap, 2)]);
  fill(at("regression"), ["coefficient", "original", "synthetic", "overlap"], rows);
  at("regression-reads").textContent = quality.reads;
}

ask();
