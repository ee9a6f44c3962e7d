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
  const measured = () => quietly("POST", "/risk/comparisons", { operators: chosen });
  const { value, error } = await timed(at("operators-wait"), `Measuring ${chosen.length} operators`, measured);
  if (!stillLatest()) return;
  tell(error);
  if (!value) return;
  showTable(value.operators);
  show("compared", value.charts.operators);
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
  fill(at("measured"), ["operator", "epsilon", "interval of the noise", "interval of conclusions", "plausible values", "entropy loss", "breach, any prior", "most revealing report"], rows);
}
