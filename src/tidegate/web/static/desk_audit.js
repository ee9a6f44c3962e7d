// Observers: how often each finds the sensitive group, without control and under the tests of this desk.

import { showCode } from "./code.js";
import { fill } from "./elements.js";
import { timed } from "./live.js";
import { withOptions } from "./snippets.js";
import { quietly, tell } from "./api.js";

const at = (id) => document.getElementById(id);
const area = (one) => (one.auc === null ? "too few records" : `${one.auc.toFixed(2)} (${one.low.toFixed(2)} to ${one.high.toFixed(2)})`);

export function observers(desk, current) {
  at("audit").addEventListener("submit", async (event) => {
    event.preventDefault();
    const wanted = { worlds: Number(at("worlds").value), records: Number(at("records").value), profile: weights() };
    if (!wanted.profile) return tell({ what: "The weights must be numbers separated by commas.", do: `Enter one weight per value${current() ? `: ${current().values.length} numbers` : ""}.` });
    showCode(withOptions(desk.all_codes.audit, Object.entries(wanted).map(([name, value]) => `${name}=${JSON.stringify(value)}`), []));
    const words = `Simulating ${wanted.worlds} pairs of ${wanted.records.toLocaleString("en")} records, twice`;
    const { value, error } = await timed(at("simulating"), words, () => quietly("POST", `${desk.at}/audits`, wanted), event.target.querySelectorAll("button"));
    tell(error);
    return value ? show(value) : null;
  });
}

function weights() {
  const found = at("profile").value.split(/[\s,;]+/).filter(Boolean).map(Number);
  return found.length && found.every((one) => Number.isFinite(one) && one >= 0) ? found : null;
}

function show({ observations, worlds, records }) {
  const free = observations.filter((one) => one.test === "none"), held = observations.filter((one) => one.test !== "none");
  const other = (one) => free.find((each) => each.observer === one.observer);
  fill(at("observers"), ["observer", "all records released", "under these tests", "conclusion"], held.map((one) => [one.observer, area(other(one)), area(one), verdict(one)]));
  const betrayed = held.filter((one) => one.betrayed), released = held.length ? Math.round(100 * held[0].released) : 0;
  const still = betrayed.length ? `${betrayed.length} of ${held.length} observers do better than guessing` : `no observer does better than guessing, as far as ${worlds} pairs can show`;
  at("observed").textContent = `Under these tests, ${released}% of the records are released, and ${still} (${worlds} pairs of ${records.toLocaleString("en")} records; 95% intervals).`;
}

function verdict(one) {
  if (one.auc === null) return "";
  if (!one.betrayed) return "could be guessing";
  return one.auc > 0.5 ? "finds the group" : "finds the group by missing records";
}
