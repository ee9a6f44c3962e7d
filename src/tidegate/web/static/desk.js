// The release desk: request records, follow the exposure, read released records.

import { charts, nearest, showTests } from "./desk_charts.js";
import { observers } from "./desk_audit.js";
import { queue } from "./desk_queue.js";
import { releasedRecords } from "./desk_released.js";
import { requests } from "./desk_requests.js";
import { live, timed } from "./live.js";
import { get, view } from "./api.js";

const desk = view(), showReleased = releasedRecords(desk), showQueue = queue(desk);
const at = (id) => document.getElementById(id);
let state = desk.state;

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
  if (news || first) { charts(state, at("shown")); showReleased(); showQueue(); }
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

at("shown").addEventListener("change", choose);
requests(desk, refresh);
observers(desk, () => state);
if (state) show(state);
const now = live(3, refresh);
if (!state) now();
