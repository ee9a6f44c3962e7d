// Comparison of operators: what one randomized report reveals, in every measure.

import { show } from "./chart.js";
import { fill, number, percent } from "./elements.js";
import { timed } from "./live.js";
import { at, latest, spell } from "./risk_requests.js";
import { quietly, tell } from "./api.js";

const form = at("operators");

export function startOperators() {
  form.addEventListener("input", compare);
  form.addEventListener("submit", (event) => event.preventDefault());
  compare();
}

function selection() {
  return [...form.querySelectorAll('input[name="operator"]:checked')].map((box) => ({
    operator: box.value,
    values: Number(at("values").value),
    parameters: { [box.dataset.parameter]: at(`of-${box.value}`).value.trim() },
  }));
}

const compare = latest(async (stillLatest) => {
  const chosen = selection();
  if (!chosen.length) return;
  const measured = () => quietly("POST", "/v1/risk/comparisons", { operators: chosen });
  const { value, error } = await timed(at("operators-wait"), `Measuring ${chosen.length} operators`, measured);
  if (!stillLatest()) return;
  tell(error);
  if (!value) return;
  showTable(value.operators);
  show("compared", value.charts.operators);
  spell("operators", { operators: chosen });
});

const share = (part) => (part === null ? "no order" : percent(part));

function showTable(measurements) {
  const rows = measurements.map((measurement) => [
    measurement.operator, measurement.epsilon === "unlimited" ? "unlimited" : number(measurement.epsilon, 3), share(measurement.interval.privacy),
    measurement.interval.concluded === null ? "no order" : `${number(measurement.interval.concluded, 3)} to ${number(measurement.interval.concluded_mean, 3)} steps`,
    `${number(measurement.entropy.before, 3)} → ${number(measurement.entropy.after, 3)}`, number(measurement.entropy.loss, 3),
    `5% → ${share(measurement.breach.to_for_any_prior)}`, `${share(measurement.most_revealing.before)} → ${share(measurement.most_revealing.after)}`,
  ]);
  fill(at("measured"), ["operator", "epsilon", "interval of the noise", "interval of conclusions", "plausible values", "entropy loss", "breach, any prior", "most revealing report"], rows);
}
