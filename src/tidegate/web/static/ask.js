// Ask: the question and the three sliders make one request. Its quote is shown, and only what is shown can be bought.

import { answered } from "./ask_answer.js";
import { showHistory } from "./ask_history.js";
import { buyer } from "./ask_purchase.js";
import { nothingKnown, showQuote, summed, tooMuch } from "./ask_preview.js";
import { builder } from "./ask_question.js";
import { sliders } from "./ask_sliders.js";
import { plainly, number } from "./elements.js";
import { meter } from "./meter.js";
import { get, post, quietly, tell, view } from "./talk.js";

const WAIT = 120; // milliseconds after the last change
const LOWEST = 1e-4; // of the ceiling: where the slider of epsilon begins
const SOONEST = 60_000; // milliseconds until a quote is renewed, whatever the clocks say
const MARGIN = 30_000; // before a quote expires
const HASH = "#question=";

const data = view();
const at = `/data/${data.name}`;
const place = (id) => document.getElementById(id);
const figure = (name) => document.querySelector(`[data-figure="${name}"]`);
const ceiling = Number(data.account.ceiling);
const question = builder(data.columns, () => changed(true));
const wishes = sliders({ identified: Object.keys(data.account.identification).length > 0, first: firstLoss() }, () => changed(false));
const purchase = buyer(at, { left: remaining, answered: shown, stale: () => changed(false) });
let waiting = null;
let renewing = null;
let latest = 0;

/** About a twentieth of what is left, in one digit. */
function firstLoss() {
  const left = Number(data.account.left) || ceiling;
  return Number((left / 20).toPrecision(1));
}

/** What this visitor can still spend. */
function remaining() {
  const own = data.account.own.left;
  return own === null ? Number(data.account.left) : Math.min(Number(own), Number(data.account.left));
}

/** Something else is asked: what is on the screen is no longer its price, and nothing can be bought until it is. */
function changed(anew) {
  latest += 1;
  purchase.offer(null);
  place("preview").classList.add("stale");
  place("preview").setAttribute("aria-busy", "true");
  if (anew) place("free").hidden = true; // it was about another question
  clearTimeout(waiting);
  clearTimeout(renewing);
  keep();
  const valid = [question.check(), wishes.check()].every(Boolean); // both show their errors
  if (valid) waiting = setTimeout(() => preview(anew), WAIT);
  else settle(nothingKnown);
}

/** Nothing is on its way any more: what is shown now is what holds. */
function settle(show) {
  place("preview").classList.remove("stale");
  place("preview").removeAttribute("aria-busy");
  show();
}

/** The question is in the address: it survives Back, a reload and a new session, and can be shared. */
function keep() {
  const state = JSON.stringify({ ...question.state(), wish: wishes.state() });
  history.replaceState(history.state, "", HASH + encodeURIComponent(state));
}

/** Fill the form in as the address says. */
function restore() {
  if (!location.hash.startsWith(HASH)) return;
  try {
    const state = JSON.parse(decodeURIComponent(location.hash.slice(HASH.length)));
    question.restore(state);
    wishes.restore(state.wish);
  } catch {
    tell({ what: "The question in the address cannot be read.", do: "Choose a question below." });
  }
}

/** What is asked now costs nothing to know. Whatever was asked later wins. */
async function preview(anew) {
  const turn = latest;
  const asked = question.asked();
  if (anew) await ends(asked, turn);
  if (turn !== latest || !wishes.check()) return;
  const { value, error } = await quietly("POST", `${at}/quotes`, { ...asked, ...wishes.wish(), charts: true });
  if (turn !== latest) return;
  const sums = value?.answered_before ? await sumsOf(asked, value.price) : summed(value);
  if (turn !== latest) return;
  tell(error, place("refused"));
  if (error) return settle(nothingKnown);
  wishes.follow(sums);
  settle(() => show(value));
}

const sumsOf = async (asked, epsilon) => summed((await quietly("POST", `${at}/previews`, { ...asked, epsilon })).value);

/** From where to where the sliders go for this question: two previews, as free as any. */
async function ends(asked, turn) {
  const [least, most] = await Promise.all([ceiling * LOWEST, ceiling].map((epsilon) => sumsOf(asked, plainly(epsilon))));
  if (turn === latest) wishes.between(least, most);
}

function show(told) {
  showQuote(told, derive);
  const short = tooMuch(told, data.account.own.left);
  tell(short, place("refused"));
  if (short) return;
  purchase.offer(told);
  renewing = setTimeout(() => changed(false), Math.max(SOONEST, Date.parse(told.expires) - Date.now() - MARGIN));
}

async function derive() {
  const told = await post(`${at}/derivations`, { ...question.asked(), charts: true });
  if (told) answered(told);
}

/** After an answer: the account has moved, and the history has grown. */
async function shown(told) {
  answered(told);
  for (const [name, one] of Object.entries(told.identification)) meter(name, { now: one.after, ceiling: one.ceiling });
  const now = await get(at);
  if (now) data.account = now.account;
  if (figure("own") && now) figure("own").textContent = number(now.account.own.left);
  await past.again();
  changed(false);
}

const past = showHistory(at, data.history, purchase.again);

/** Enter in a field asks for the price now, and moves to it; it never buys. */
place("ask").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.target.tagName !== "INPUT") return;
  event.preventDefault();
  changed(true);
  if (!document.querySelector("#ask [aria-invalid]")) place("preview").focus();
});
place("ask").addEventListener("submit", (event) => event.preventDefault());
addEventListener("pageshow", (event) => { if (event.persisted) changed(true); });
addEventListener("hashchange", () => {
  restore();
  changed(true);
});

restore();
changed(true);
