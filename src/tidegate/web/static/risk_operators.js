// Operators side by side: what one randomized report gives away, in every measure.

import { chart, colour } from "./chart.js";
import { fill, number, percent } from "./elements.js";
import { timed } from "./live.js";
import { at, latest, spell } from "./risk_asking.js";
import { quietly, tell } from "./talk.js";

const form = at("operators");

export function startOperators() {
  form.addEventListener("input", compare);
  form.addEventListener("submit", (event) => event.preventDefault());
  compare();
}

function asked() {
  return [...form.querySelectorAll('input[name="operator"]:checked')].map((box) => ({
    operator: box.value,
    values: Number(at("values").value),
    parameters: { [box.dataset.parameter]: at(`of-${box.value}`).value.trim() },
  }));
}

const compare = latest(async (stillLatest) => {
  const chosen = asked();
  if (!chosen.length) return;
  const measured = () => Promise.all(chosen.map((one) => quietly("POST", "/risk/operators", one)));
  const found = await timed(at("operators-wait"), `Measuring ${chosen.length}`, measured);
  if (!stillLatest()) return;
  tell(found.find((one) => one.error)?.error);
  const there = found.flatMap((one) => (one.value ? [one.value] : []));
  if (!there.length) return;
  showTable(there);
  showChart(there);
  spell("operators", { operators: chosen });
});

const share = (part) => (part === null ? "no order" : percent(part));

function showTable(found) {
  const rows = found.map((one) => [
    one.operator, one.epsilon === "unlimited" ? "unlimited" : number(one.epsilon, 3), share(one.interval.privacy),
    one.interval.concluded === null ? "no order" : `${number(one.interval.concluded, 3)} to ${number(one.interval.concluded_mean, 3)} steps`,
    `${number(one.entropy.before, 3)} → ${number(one.entropy.after, 3)}`, number(one.entropy.loss, 3),
    `5% → ${share(one.breach.to_for_any_prior)}`, `${share(one.most_revealing.before)} → ${share(one.most_revealing.after)}`,
  ]);
  fill(at("measured"), ["operator", "epsilon", "interval of the noise", "interval concluded", "values that seem likely", "entropy loss", "breach, any prior", "most revealing report"], rows);
}

function showChart(found) {
  const names = found.map((one) => one.operator);
  const least = found.reduce((best, one) => (one.entropy.loss < best.entropy.loss ? one : best));
  const bars = (name, ink, of) => ({ type: "bar", orientation: "h", name, y: names, x: found.map(of), marker: { color: colour(ink) } });
  chart("compared", {
    title: `${least.operator} tells least on average: an entropy loss of ${number(least.entropy.loss, 2)}`,
    traces: () => [
      bars("entropy loss (on average)", "accent", (one) => one.entropy.loss),
      bars("what 5% can become (at worst)", "quiet", (one) => one.breach.to_for_any_prior),
      bars("most revealing report", "soft", (one) => one.most_revealing.after),
    ],
    layout: { legend: { orientation: "h", y: 1.02, yanchor: "bottom" }, barmode: "group", height: 160 + 70 * names.length, xaxis: { range: [0, 1.03], title: { text: "share or probability" } }, yaxis: { autorange: "reversed" } },
    table: { columns: ["operator", "measure", "value", "what it means"], rows: found.flatMap((one) => one.rows.map((row) => [one.operator, row.measure, row.value, row.says])) },
  });
}
