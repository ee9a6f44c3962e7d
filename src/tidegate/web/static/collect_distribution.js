// The distribution behind randomized reports, with its band and the reports as they came.

import { chart, colour } from "./chart.js";
import { keyed } from "./chart_key.js";
import { showCode } from "./code.js";
import { element, number, percent } from "./elements.js";
import { timed } from "./live.js";
import { withOptions } from "./spelled.js";
import { quietly, tell } from "./talk.js";

const FEW = 30; // values up to which there are bars
const at = (id) => document.getElementById(id);

/** Gives a way to estimate anew. */
export function distribution(page, current) {
  if (!at("question")) return () => {};
  async function estimate() {
    const question = at("question").value, ordered = page.ordered.includes(question);
    at("methods").hidden = !ordered;
    const method = ordered ? at("method").value : "";
    showCode(withOptions(page.all_codes[`distribution ${question}`], method ? [`method="${method}"`] : [], ["--method", method]));
    if (!current().reports) return;
    const address = `${page.at}/distributions/${question}?method=${method}`;
    const { value, error } = await timed(at("estimating"), `reconstructing ${question}`, () => quietly("GET", address));
    tell(error);
    if (value) show(value);
  }
  at("distribution-form").addEventListener("submit", (event) => { event.preventDefault(); estimate(); });
  at("question").addEventListener("change", estimate);
  at("method").addEventListener("change", estimate);
  return estimate;
}

/** The reports as they came, at the values' own places; sets are counted by what they hold. */
function raw(found) {
  return found.labels.map((_, place) => found.raw[place - found.first] ?? 0);
}

function bars(found) {
  const band = found.low ? { type: "data", symmetric: false, array: found.high.map((h, i) => h - found.masses[i]), arrayminus: found.masses.map((m, i) => m - found.low[i]), color: colour("ink"), thickness: 1.5 } : undefined;
  return [
    { type: "bar", name: "estimate", x: found.labels, y: found.masses, error_y: band, marker: { color: colour("accent") } },
    { name: "reports as they came", x: found.labels, y: raw(found), mode: "markers", marker: { symbol: "line-ew-open", size: 18, color: colour("quiet"), line: { width: 3 } } },
  ];
}

function lines(found) {
  const edge = (name, y, fill) => ({ name, x: found.labels, y, mode: "lines", line: { width: 0, color: colour("accent") }, fill, fillcolor: colour("soft"), showlegend: Boolean(fill), hoverinfo: "skip" });
  const band = found.low ? [edge("low", found.low), edge("band", found.high, "tonexty")] : [];
  return [...band,
    { name: "reports as they came", x: found.labels, y: raw(found), mode: "lines", line: { width: 1, color: colour("quiet"), dash: "dot" } },
    { name: "estimate", x: found.labels, y: found.masses, mode: "lines", line: { width: 2.5, color: colour("accent") } }];
}

function show(found) {
  chart("distribution", {
    title: found.finding,
    traces: () => (found.labels.length <= FEW ? bars(found) : lines(found)),
    layout: () => ({ xaxis: { title: { text: found.attribute }, type: "category", nticks: 12 }, yaxis: { title: { text: "share of people" }, tickformat: ".0%", rangemode: "tozero" }, ...keyed(3, 320) }),
    table: {
      columns: [found.attribute, "share", "low", "high", "of the reports"],
      rows: found.labels.map((label, place) => [label, percent(found.masses[place]), found.low ? percent(found.low[place]) : "", found.high ? percent(found.high[place]) : "", percent(raw(found)[place])]),
    },
  });
  at("sure").textContent = `From ${found.reports.toLocaleString("en")} reports, by ${found.method}: ${found.sure}.`;
  at("warnings").replaceChildren(...found.warnings.map((text) => element("li", {}, text)));
}
