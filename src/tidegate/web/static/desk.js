// The release desk: request records, follow the exposure, read released records.

import { showCode } from "./code.js";
import { charts, nearest, showTests } from "./desk_charts.js";
import { observers } from "./desk_audit.js";
import { fill } from "./elements.js";
import { live, timed } from "./live.js";
import { python, shell, withOptions } from "./snippets.js";
import { get, quietly, tell, view } from "./api.js";

const desk = view(), PAGE = 20, AT_ONCE = 500, ONE_BY_ONE = 200;
const at = (id) => document.getElementById(id);
let state = desk.state, pages = [0];

// Requests

function keys() {
  return [...new Set(at("keys").value.split(/\r?\n/).map((line) => line.trim()).filter(Boolean))];
}

function words(outcome) {
  if (outcome.outcome === "released") return `released (request ${outcome.number.toLocaleString("en")})`;
  if (outcome.outcome === "withdrawn") return "withdrawn";
  if (outcome.outcome === "refused") return `refused: ${outcome.reason}`;
  const position = outcome.ahead === null ? "" : `, position ${(outcome.ahead + 1).toLocaleString("en")} in the queue`;
  return `waiting: request ${outcome.number.toLocaleString("en")}${position}`;
}

async function request(requested) {
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
async function oneByOne(requested, address) {
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
  status: ["Checking", (requested) => oneByOne(requested, "status")],
  withdraw: ["Withdrawing", (requested) => oneByOne(requested, "withdrawals")],
};

async function ask(event) {
  event.preventDefault();
  const does = event.submitter?.value ?? "request", requested = keys();
  if (!requested.length) return tell({ what: "No key was entered.", do: "Enter the keys of records, one per line." });
  const [doing, work] = DOES[does];
  at("summary").textContent = "";
  const buttons = event.target.querySelectorAll("button");
  const { results, error } = await timed(at("working"), `${doing} ${requested.length.toLocaleString("en")}`, () => work(requested), buttons);
  tell(error);
  showOutcomes(results);
  spell(does);
  return refresh();
}

function showOutcomes(results) {
  const count = (kind) => results.filter(([, outcome]) => outcome.outcome === kind).length.toLocaleString("en");
  const kinds = [["released", "released"], ["deferred", "waiting"], ["withdrawn", "withdrawn"], ["refused", "refused"]];
  const parts = kinds.filter(([kind]) => count(kind) !== "0").map(([kind, word]) => `${count(kind)} ${word}`);
  at("summary").textContent = results.length ? `${results.length.toLocaleString("en")} ${results.length === 1 ? "key" : "keys"}: ${parts.join(", ")}.` : "";
  fill(at("outcomes"), ["key", "outcome"], results.slice(0, 100).map(([key, outcome]) => [key, words(outcome)]));
  if (results.length > 100) at("summary").textContent += " The first 100 are listed.";
}

function spell(does) {
  const requested = keys(), code = desk.all_codes;
  if (does === "request" && requested.length > 1) return showCode(code.several);
  if (!code[does] || !requested.length) return showCode(code.state);
  return showCode(withOptions(code[does], [python(requested[0])], [shell(requested[0])]));
}

// Display

const address = () => `${desk.at}?${new URLSearchParams({ charts: true, track: at("shown").value })}`;

async function choose() {
  const latest = await get(address());
  if (!latest) return;
  state = latest;
  charts(state, at("shown"));
}

async function refresh() {
  const latest = await (state ? get(address()) : timed(at("opening"), "Opening the release desk; the first time, its code is compiled and its critical values are simulated", () => get(address())));
  if (latest) show(latest);
  return latest !== null;
}

function show(latest) {
  const news = !state || JSON.stringify(latest.out_in_all) !== JSON.stringify(state.out_in_all) || latest.waiting !== state.waiting;
  const first = at("watched").childElementCount === 0;
  state = latest;
  const out = Object.values(state.out_in_all).reduce((a, b) => a + b, 0);
  at("out").textContent = out.toLocaleString("en");
  at("waiting").textContent = state.waiting.toLocaleString("en");
  at("queue").textContent = queued();
  at("nearest").textContent = nearest(state);
  if (first) showTests(at("watched"), state.watched);
  if (first) setProfile();
  if (news || first) { charts(state, at("shown")); showReleased(); }
}

function queued() {
  if (!state.waiting) return "No requests are waiting.";
  const waits = Object.keys(state.asked_for).map((group) => [state.asked_for[group] - state.out_in_all[group], group]).filter(([count]) => count);
  return `Waiting by group: ${waits.map(([count, group]) => `${group} ${count.toLocaleString("en")}`).join(", ")}.`;
}

function setProfile() {
  const weights = desk.profiles[0] ?? state.values.map((_, index) => index + 1);
  at("profile").value = weights.join(", ");
  at("values").textContent = ` for ${state.values.join("; ")}`;
}

async function showReleased() {
  const page = await get(`${desk.at}/released?limit=${PAGE}&after=${pages.at(-1)}`);
  if (!page) return;
  at("no-records").hidden = page.records.length > 0 || pages.length > 1;
  fill(at("released"), page.records.length ? desk.releases : [], page.records.map((record) => desk.releases.map((name) => record[name] ?? "missing")));
  at("earlier").hidden = pages.length === 1;
  at("later").hidden = page.next === null;
  at("later").onclick = () => { pages.push(page.next); showReleased(); };
}

at("earlier").onclick = () => { pages.pop(); showReleased(); };
at("shown").addEventListener("change", choose);
at("ask").addEventListener("submit", ask);
at("keys").addEventListener("input", () => spell("request"));
at("file").addEventListener("change", async () => {
  const [file] = at("file").files;
  if (!file) return;
  const lines = (await file.text()).split(/\r?\n/);
  at("keys").value = (lines[0].trim() === desk.key ? lines.slice(1) : lines).join("\n"); // the column's name is not a key
  spell("request");
});
observers(desk, () => state);
if (state) show(state);
const now = live(3, refresh);
if (!state) now();
