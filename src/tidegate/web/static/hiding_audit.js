// Observers under each kind of release promise: how much is released, and how well the best observer finds the group.

import { showCode } from "./code.js";
import { showVerdict, simulationCard, statusOf } from "./desk_simulation.js";
import { fill } from "./elements.js";
import { timed } from "./live.js";
import { withOptions } from "./snippets.js";
import { quietly, tell } from "./api.js";

const at = (id) => document.getElementById(id);
const NAMES = { none: "no control", "kullback-leibler": "Kullback-Leibler test" };
const named = (test) => NAMES[test] ?? test;
const area = ({ auc, low, high }) => (auc === null ? "too few records" : `${auc.toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`);
const strength = ({ auc }) => (auc === null ? -1 : Math.abs(auc - 0.5));
const best = (observations) => observations.reduce((a, b) => (strength(b) > strength(a) ? b : a));

/** The weights of the form; none are an empty list, invalid ones null. */
function weights() {
  const numbers = at("profile").value.split(/[\s,;]+/).filter(Boolean).map(Number);
  return numbers.every((weight) => Number.isFinite(weight) && weight >= 0) ? numbers : null;
}

export function comparison(desk) {
  const buttons = simulationCard();
  at("audit").addEventListener("submit", async (event) => {
    event.preventDefault();
    const request = { worlds: Number(at("worlds").value), records: Number(at("records").value), profile: weights() };
    if (!request.profile) return tell({ what: "The weights must be numbers separated by commas.", do: `Enter one weight per value: ${desk.state.joint_values.length} numbers.` });
    showCode(withOptions(desk.all_codes.audit, Object.entries(request).map(([name, value]) => `${name}=${JSON.stringify(value)}`), []));
    const text = `Simulating ${request.worlds} pairs of ${request.records.toLocaleString("en")} records under each control`;
    const { value, error } = await timed(statusOf(event), text, () => quietly("POST", `${desk.at}/audits`, request), buttons);
    tell(error);
    return value ? show(value) : null;
  });
}

function show({ observations, simulation, worlds, records }) {
  showVerdict(simulation);
  const controls = [...new Set(observations.map(({ test }) => test))];
  const of = (test) => observations.filter((observation) => observation.test === test);
  fill(at("observers"), ["control", "released", "AUC", "best observer", "conclusion"], controls.map((test) => {
    const strongest = best(of(test));
    return [named(test), `${Math.round(100 * strongest.released)}%`, area(strongest), strongest.observer, verdict(of(test))];
  }));
  fill(at("every-observer").querySelector("table"), ["observer", ...controls.map(named)], of(controls[0]).map(({ observer }) => [observer, ...controls.map((test) => area(of(test).find((each) => each.observer === observer) ?? { auc: null }))]));
  at("every-observer").hidden = false;
  at("observed").textContent = `${worlds} pairs of ${records.toLocaleString("en")} records; 95% intervals, each by itself. The best of ${of(controls[0]).length} observers is shown for each control.`;
}

function verdict(observations) {
  const successful = observations.filter(({ betrayed }) => betrayed).length;
  return successful ? `${successful} of ${observations.length} observers find the group` : "all observers could be guessing";
}
