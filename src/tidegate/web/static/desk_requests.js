// The form of a release desk: request records by key or file, check or withdraw requests, show the outcome of each key.

import { showCode } from "./code.js";
import { fill } from "./elements.js";
import { timed } from "./live.js";
import { python, shell, withOptions } from "./snippets.js";
import { quietly, tell } from "./api.js";

const AT_ONCE = 500, ONE_BY_ONE = 200, LISTED = 100;
const at = (id) => document.getElementById(id);
const whole = (count) => count.toLocaleString("en");

function keys() {
  return [...new Set(at("keys").value.split(/\r?\n/).map((line) => line.trim()).filter(Boolean))];
}

function words(outcome) {
  if (outcome.outcome === "released") return `released (request ${whole(outcome.number)})`;
  if (outcome.outcome === "withheld") return `withheld (request ${whole(outcome.number)}): not chosen for release on ${outcome.day}`;
  if (outcome.outcome === "withdrawn") return "withdrawn";
  if (outcome.outcome === "refused") return `refused: ${outcome.reason}`;
  if (outcome.later) return "deferred: added after the records for release were chosen";
  const position = outcome.ahead === null ? "" : `, position ${whole(outcome.ahead + 1)} in the queue`;
  return `waiting: request ${whole(outcome.number)}${position}`;
}

async function request(desk, requested) {
  const results = [];
  for (let start = 0; start < requested.length; start += AT_ONCE) {
    const part = requested.slice(start, start + AT_ONCE);
    const { value, error } = await quietly("POST", `${desk.at}/requests`, { keys: part });
    if (error) return { results, error };
    results.push(...value.outcomes.map((outcome, index) => [part[index], outcome]));
  }
  return { results };
}

/** Status or withdrawal, key by key; a refusal is the outcome of its key. */
async function oneByOne(desk, requested, address) {
  const results = [];
  if (requested.length > ONE_BY_ONE) return { results, error: { what: `The request has more than ${ONE_BY_ONE} keys.`, do: "Enter fewer keys." } };
  for (const key of requested) {
    const { value, error } = await quietly("POST", `${desk.at}/${address}`, { key });
    if (error && error.code !== "not-waiting") return { results, error };
    results.push([key, value ?? { outcome: "refused", reason: error.what }]);
  }
  return { results };
}

const DOES = {
  request: ["Requesting", request],
  status: ["Checking", (desk, requested) => oneByOne(desk, requested, "status")],
  withdraw: ["Withdrawing", (desk, requested) => oneByOne(desk, requested, "withdrawals")],
};

function showOutcomes(results) {
  const count = (kind, isLater) => whole(results.filter(([, { outcome, later }]) => outcome === kind && (isLater === undefined || isLater === Boolean(later))).length);
  const kinds = [["released", "released"], ["withheld", "withheld"], ["deferred", "waiting", false], ["deferred", "deferred", true], ["withdrawn", "withdrawn"], ["refused", "refused"]];
  const parts = kinds.map(([kind, word, isLater]) => [count(kind, isLater), word]).filter(([number]) => number !== "0").map(([number, word]) => `${number} ${word}`);
  at("summary").textContent = results.length ? `${whole(results.length)} ${results.length === 1 ? "key" : "keys"}: ${parts.join(", ")}.` : "";
  fill(at("outcomes"), ["key", "outcome"], results.slice(0, LISTED).map(([key, outcome]) => [key, words(outcome)]));
  if (results.length > LISTED) at("summary").textContent += ` The first ${LISTED} are listed.`;
}

function spell(desk, does) {
  const requested = keys(), code = desk.all_codes;
  if (does === "request" && requested.length > 1) return showCode(code.several);
  if (!code[does] || !requested.length) return showCode(code.state);
  return showCode(withOptions(code[does], [python(requested[0])], [shell(requested[0])]));
}

/** Handle the form of a desk. `refresh` is called after each request. */
export function requests(desk, refresh) {
  at("ask").addEventListener("submit", async (event) => {
    event.preventDefault();
    const does = event.submitter?.value ?? "request", requested = keys();
    if (!requested.length) return tell({ what: "No key was entered.", do: "Enter the keys of records, one per line." });
    const [doing, work] = DOES[does];
    at("summary").textContent = "";
    const buttons = event.target.querySelectorAll("button");
    const { results, error } = await timed(at("working"), `${doing} ${whole(requested.length)}`, () => work(desk, requested), buttons);
    tell(error);
    showOutcomes(results);
    spell(desk, does);
    return refresh();
  });
  at("keys").addEventListener("input", () => spell(desk, "request"));
  at("file").addEventListener("change", async () => {
    const [file] = at("file").files;
    if (!file) return;
    const lines = (await file.text()).split(/\r?\n/);
    at("keys").value = (lines[0].trim() === desk.key ? lines.slice(1) : lines).join("\n"); // the column's name is not a key
    spell(desk, "request");
  });
}
