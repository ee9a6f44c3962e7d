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
  const place = outcome.ahead === null ? "" : `, position ${(outcome.ahead + 1).toLocaleString("en")} in the queue`;
  return `waiting: request ${outcome.number.toLocaleString("en")}${place}`;
}

async function request(wanted) {
  const found = [];
  for (let start = 0; start < wanted.length; start += AT_ONCE) {
    const part = wanted.slice(start, start + AT_ONCE);
    const { value, error } = await quietly("POST", `${desk.at}/requests`, { keys: part });
    if (error) return { found, error };
    found.push(...value.outcomes.map((outcome, place) => [part[place], outcome]));
  }
  return { found };
}

/** Status or withdrawal, key by key; a refusal is the outcome of its key. */
async function oneByOne(wanted, address) {
  const found = [];
  if (wanted.length > ONE_BY_ONE) return { found, error: { what: `The request has more than ${ONE_BY_ONE} keys.`, do: "Enter fewer keys." } };
  for (const key of wanted) {
    const { value, error } = await quietly("POST", `${desk.at}/${address}`, { key });
    if (error && error.code !== "not-waiting") return { found, error };
    found.push([key, value ?? { outcome: "refused", reason: error.what }]);
  }
  return { found };
}

const DOES = {
  request: ["Requesting", request],
  status: ["Checking", (wanted) => oneByOne(wanted, "status")],
  withdraw: ["Withdrawing", (wanted) => oneByOne(wanted, "withdrawals")],
};

async function ask(event) {
  event.preventDefault();
  const does = event.submitter?.value ?? "request", wanted = keys();
  if (!wanted.length) return tell({ what: "No key was entered.", do: "Enter the keys of records, one per line." });
  const [doing, work] = DOES[does];
  at("summary").textContent = "";
  const buttons = event.target.querySelectorAll("button");
  const { found, error } = await timed(at("working"), `${doing} ${wanted.length.toLocaleString("en")}`, () => work(wanted), buttons);
  tell(error);
  showOutcomes(found);
  spell(does);
  return refresh();
}

function showOutcomes(found) {
  const many = (kind) => found.filter(([, outcome]) => outcome.outcome === kind).length.toLocaleString("en");
  const told = [["released", "released"], ["deferred", "waiting"], ["withdrawn", "withdrawn"], ["refused", "refused"]];
  const parts = told.filter(([kind]) => many(kind) !== "0").map(([kind, word]) => `${many(kind)} ${word}`);
  at("summary").textContent = found.length ? `${found.length.toLocaleString("en")} ${found.length === 1 ? "key" : "keys"}: ${parts.join(", ")}.` : "";
  fill(at("outcomes"), ["key", "outcome"], found.slice(0, 100).map(([key, outcome]) => [key, words(outcome)]));
  if (found.length > 100) at("summary").textContent += " The first 100 are listed.";
}

function spell(does) {
  const wanted = keys(), code = desk.all_codes;
  if (does === "request" && wanted.length > 1) return showCode(code.several);
  if (!code[does] || !wanted.length) return showCode(code.state);
  return showCode(withOptions(code[does], [python(wanted[0])], [shell(wanted[0])]));
}

// Display

const address = () => `${desk.at}?${new URLSearchParams({ charts: true, track: at("shown").value })}`;

async function choose() {
  const found = await get(address());
  if (!found) return;
  state = found;
  charts(state, at("shown"));
}

async function refresh() {
  const found = await (state ? get(address()) : timed(at("opening"), "Opening the release desk; the first time, its code is compiled and its critical values are simulated", () => get(address())));
  if (found) show(found);
  return found !== null;
}

function show(found) {
  const news = !state || JSON.stringify(found.out_in_all) !== JSON.stringify(state.out_in_all) || found.waiting !== state.waiting;
  const first = at("watched").childElementCount === 0;
  state = found;
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
  const waits = Object.keys(state.asked_for).map((group) => [state.asked_for[group] - state.out_in_all[group], group]).filter(([many]) => many);
  return `Waiting by group: ${waits.map(([many, group]) => `${group} ${many.toLocaleString("en")}`).join(", ")}.`;
}

function setProfile() {
  const given = desk.profiles[0] ?? state.values.map((_, place) => place + 1);
  at("profile").value = given.join(", ");
  at("values").textContent = ` for ${state.values.join("; ")}`;
}

async function showReleased() {
  const told = await get(`${desk.at}/released?limit=${PAGE}&after=${pages.at(-1)}`);
  if (!told) return;
  at("no-records").hidden = told.records.length > 0 || pages.length > 1;
  fill(at("released"), told.records.length ? desk.releases : [], told.records.map((record) => desk.releases.map((name) => record[name] ?? "missing")));
  at("earlier").hidden = pages.length === 1;
  at("later").hidden = told.next === null;
  at("later").onclick = () => { pages.push(told.next); showReleased(); };
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
