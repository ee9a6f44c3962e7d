// The query page: the query and the three sliders form one request. Its quote is shown, and only that quote can be run.

import { answered } from "./ask_answer.js";
import { showHistory } from "./ask_history.js";
import { buyer } from "./ask_purchase.js";
import { nothingKnown, showQuote, summed, tooMuch } from "./ask_preview.js";
import { builder } from "./ask_question.js";
import { saver } from "./ask_save.js";
import { sliders } from "./ask_sliders.js";
import { plainly, number } from "./elements.js";
import { meter } from "./meter.js";
import { get, post, quietly, tell, view } from "./api.js";

const WAIT = 120; // milliseconds after the last change
const LOWEST = 1e-4; // fraction of the budget limit at which the slider of the loss starts
const SOONEST = 60_000; // milliseconds until a quote is renewed at the earliest, even if the clocks differ
const MARGIN = 30_000; // before a quote expires
const HASH = "#question=";

const data = view();
const at = `/v1/data/${data.name}`;
const byId = (id) => document.getElementById(id);
const figure = (name) => document.querySelector(`[data-figure="${name}"]`);
const ceiling = Number(data.account.ceiling);
const unit = data.account.unit; // "epsilon", or "z" under the average guarantee
const question = builder(data.columns, () => changed(true));
const wishes = sliders({ identified: Object.keys(data.account.identification).length > 0, first: firstLoss(), unit }, () => changed(false));
const purchase = buyer(at, { unit, left: remaining, answered: shown, stale: () => changed(false) });
let waiting = null;
let renewing = null;
let latest = 0;

/** About a twentieth of the remaining budget, in one digit. */
function firstLoss() {
  const left = Number(data.account.left) || ceiling;
  return Number((left / 20).toPrecision(1));
}

/** The amount that this user can still spend. */
function remaining() {
  const own = data.account.own.left;
  return own === null ? Number(data.account.left) : Math.min(Number(own), Number(data.account.left));
}

/** The query has changed: the price on the screen is outdated, and nothing can be run until the new price is shown. */
function changed(isNewQuery) {
  latest += 1;
  purchase.offer(null);
  byId("preview").classList.add("stale");
  byId("preview").setAttribute("aria-busy", "true");
  if (isNewQuery) byId("free").hidden = true; // it belongs to another query
  clearTimeout(waiting);
  clearTimeout(renewing);
  keep();
  const valid = [question.check(), wishes.check()].every(Boolean); // both show their errors
  if (valid) waiting = setTimeout(() => preview(isNewQuery), WAIT);
  else settle(nothingKnown);
}

/** The preview is up to date. */
function settle(show) {
  byId("preview").classList.remove("stale");
  byId("preview").removeAttribute("aria-busy");
  show();
}

/** Store the query in the URL: it survives Back, a reload and a new session, and can be shared. */
function keep() {
  const state = JSON.stringify({ ...question.state(), wish: wishes.state() });
  history.replaceState(history.state, "", HASH + encodeURIComponent(state));
}

/** Fill in the form from the URL. */
function restore() {
  if (!location.hash.startsWith(HASH)) return data.saved ? open(data.saved) : question.start();
  try {
    const state = JSON.parse(decodeURIComponent(location.hash.slice(HASH.length)));
    question.restore(state);
    wishes.restore(state.wish);
  } catch {
    tell({ what: "The query in the URL cannot be read.", do: "Build a query below." });
  }
}

/** Fill in the form from a saved question or a stored answer. */
function open({ request, sql }) {
  const state = question.stateOf(request, sql);
  if (!state) return tell({ what: "The form cannot show this query.", do: "Run it through the API." });
  question.restore(state);
  const [name, value] = Object.entries(request).find(([key]) => ["rho", unit, "error", "share"].includes(key)) ?? [];
  if (name) wishes.restore(name === "share" ? { [unit]: plainly(Number(value) * ceiling) } : { [name]: String(value) });
}

/** Request a quote, which is free. A later request replaces an earlier one. */
async function preview(isNewQuery) {
  const turn = latest;
  const request = question.asked();
  if (isNewQuery) await ends(request, turn);
  if (turn !== latest || !wishes.check()) return;
  const { value, error } = await quietly("POST", `${at}/quotes`, { ...request, ...wishes.wish(), charts: true });
  if (turn !== latest) return;
  const sums = value?.answered_before ? await sumsOf(request, value.price) : summed(value);
  if (turn !== latest) return;
  tell(error, byId("refused"));
  if (error) return settle(nothingKnown);
  wishes.follow(sums);
  settle(() => show(value));
}

const sumsOf = async (request, loss) => summed((await quietly("POST", `${at}/previews`, { ...request, [unit]: loss })).value);

/** Set the ends of the sliders for this query from two previews, which are free. */
async function ends(request, turn) {
  const [least, most] = await Promise.all([ceiling * LOWEST, ceiling].map((loss) => sumsOf(request, plainly(loss))));
  if (turn === latest) wishes.between(least, most);
}

function show(result) {
  showQuote(result, remaining(), derive);
  const short = tooMuch(result, data.account.own.left);
  tell(short, byId("refused"));
  if (short) return;
  purchase.offer(result);
  renewing = setTimeout(() => changed(false), Math.max(SOONEST, Date.parse(result.expires) - Date.now() - MARGIN));
}

async function derive() {
  const { plan, ...asked } = question.asked(); // what follows from earlier answers needs no plan
  const result = await post(`${at}/derivations`, { ...asked, charts: true });
  if (result) answered(result);
}

/** After an answer: update the account and the history. */
async function shown(result, link) {
  answered(result, link);
  for (const [name, target] of Object.entries(result.identification)) meter(name, { now: target.after, ceiling: target.ceiling });
  const now = await get(at);
  if (now) data.account = now.account;
  if (figure("at-delta") && now) figure("at-delta").dataset.now = now.account.epsilon_at_delta;
  if (figure("own") && now) figure("own").textContent = number(now.account.own.left);
  await past.again();
  changed(false);
}

saver(at, data.name, () => ([question.check(), wishes.check()].every(Boolean) ? { ...question.asked(), ...wishes.wish() } : null));
const past = showHistory(at, data.history, purchase.again);

/** Enter in a field requests the price now and moves to it; it never runs the query. */
byId("ask").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.target.tagName !== "INPUT") return;
  event.preventDefault();
  changed(true);
  if (!document.querySelector("#ask [aria-invalid]")) byId("preview").focus();
});
byId("ask").addEventListener("submit", (event) => event.preventDefault());
addEventListener("pageshow", (event) => { if (event.persisted) changed(true); });
addEventListener("hashchange", () => {
  restore();
  changed(true);
});

restore();
changed(true);
