// Observers: how often each finds the sensitive group, without control and under the tests of this desk.

import { showCode } from "./code.js";
import { showVerdict, simulationCard, statusOf } from "./desk_simulation.js";
import { fill } from "./elements.js";
import { timed } from "./live.js";
import { withOptions } from "./snippets.js";
import { quietly, tell } from "./api.js";

const at = (id) => document.getElementById(id);
const area = (observation) => (observation.auc === null ? "too few records" : `${observation.auc.toFixed(2)} (${observation.low.toFixed(2)} to ${observation.high.toFixed(2)})`);

export function observers(desk, current) {
  const buttons = simulationCard();
  at("audit").addEventListener("submit", async (event) => {
    event.preventDefault();
    const request = { worlds: Number(at("worlds").value), records: Number(at("records").value), profile: weights() };
    if (!request.profile) return tell({ what: "The weights must be numbers separated by commas.", do: `Enter one weight per value${current() ? `: ${current().values.length} numbers` : ""}.` });
    showCode(withOptions(desk.all_codes.audit, Object.entries(request).map(([name, value]) => `${name}=${JSON.stringify(value)}`), []));
    const text = `Simulating ${request.worlds} pairs of ${request.records.toLocaleString("en")} records under each control`;
    const { value, error } = await timed(statusOf(event), text, () => quietly("POST", `${desk.at}/audits`, request), buttons);
    tell(error);
    return value ? show(value) : null;
  });
}

function weights() {
  const numbers = at("profile").value.split(/[\s,;]+/).filter(Boolean).map(Number);
  return numbers.length && numbers.every((observation) => Number.isFinite(observation) && observation >= 0) ? numbers : null;
}

function show({ observations, simulation, worlds, records }) {
  showVerdict(simulation);
  const under = (test) => observations.filter((observation) => observation.test === test);
  const free = under("none"), hidden = under("hiding"), controlled = observations.filter(({ test }) => test !== "none" && test !== "hiding");
  const same = (group, observation) => group.find((each) => each.observer === observation.observer);
  const columns = ["observer", "all records released", "under these tests", "conclusion", ...(hidden.length ? ["under a hiding promise"] : [])];
  fill(at("observers"), columns, controlled.map((observation) => [observation.observer, area(same(free, observation)), area(observation), verdict(observation), ...(hidden.length ? [area(same(hidden, observation))] : [])]));
  const successful = controlled.filter((observation) => observation.betrayed), released = share(controlled);
  const still = successful.length ? `${successful.length} of ${controlled.length} observers do better than guessing` : `no observer does better than guessing, as far as ${worlds} pairs can show`;
  const other = hidden.length
    ? `A hiding promise with its default settings releases ${share(hidden)}% of the same records; there, the group is compared with the others of its data set.`
    : "A hiding promise with its default settings releases none of so few records.";
  at("observed").textContent = `Under these tests, ${released}% of the records are released, and ${still} (${worlds} pairs of ${records.toLocaleString("en")} records; 95% intervals). ${other}`;
}

const share = (observations) => (observations.length ? Math.round(100 * observations[0].released) : 0);

function verdict(observation) {
  if (observation.auc === null) return "";
  if (!observation.betrayed) return "could be guessing";
  return observation.auc > 0.5 ? "finds the group" : "finds the group by missing records";
}
