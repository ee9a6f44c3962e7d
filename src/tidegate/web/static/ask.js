// Ask: the question and the three sliders make one request; the preview of it moves everything else.

import { answered } from "./ask_answer.js";
import { showHistory } from "./ask_history.js";
import { picture } from "./ask_picture.js";
import { builder } from "./ask_question.js";
import { sliders } from "./ask_sliders.js";
import { showCode } from "./code.js";
import { number, plainly } from "./elements.js";
import { meter } from "./meter.js";
import { get, key, post, quietly, tell, view } from "./talk.js";

const WAIT = 120; // milliseconds after the last change
const LOWEST = 1e-4; // of the ceiling: where the slider of epsilon begins

const data = view();
const at = `/data/${data.name}`;
const place = (id) => document.getElementById(id);
const figure = (name) => document.querySelector(`[data-figure="${name}"]`);
const ceiling = Number(data.account.ceiling);
const question = builder(data.columns, () => changed(true));
const wishes = sliders({ identified: Object.keys(data.account.identification).length > 0, first: firstLoss() }, () => changed(false));
let waiting = null;
let latest = 0;
let sending = null; // the key of a request that is under way, or that did not arrive

/** About a twentieth of what is left, in one digit. */
function firstLoss() {
  const left = Number(data.account.left) || ceiling;
  return Number((left / 20).toPrecision(1));
}

function changed(anew) {
  sending = null;
  if (anew) place("free").hidden = true; // it was about another question
  clearTimeout(waiting);
  waiting = setTimeout(() => preview(anew), WAIT);
}

/** What is asked now costs nothing to know. Whatever was asked later wins. */
async function preview(anew) {
  const turn = ++latest;
  const asked = question.asked();
  if (anew) await ends(asked, turn);
  const { value, error } = await quietly("POST", `${at}/previews`, { ...asked, ...wishes.wish() });
  if (turn !== latest) return;
  tell(error, place("refused"));
  place("go").disabled = Boolean(error);
  if (error) return nothingKnown();
  show(value);
}

/** From where to where the sliders go for this question: two previews, as free as any. */
async function ends(asked, turn) {
  const of = async (epsilon) => (await quietly("POST", `${at}/previews`, { ...asked, epsilon: plainly(epsilon) })).value;
  const [least, most] = await Promise.all([of(ceiling * LOWEST), of(ceiling)]);
  if (turn === latest) wishes.between(summed(least), summed(most));
}

/** The three numbers of a preview; null where one is not known beforehand. */
function summed(told) {
  if (!told) return null;
  const alone = Object.values(told.identification).map((one) => one.alone);
  const only = told.expected.length === 1 ? told.expected[0].error : null;
  return { rho: alone.length ? Math.max(...alone) : null, epsilon: Number(told.cost), error: only };
}

function show(told) {
  const sums = summed(told);
  wishes.follow(sums);
  for (const [name, one] of Object.entries(told.identification)) meter(name, one);
  figure("cost").textContent = number(sums.epsilon);
  figure("left").textContent = number(told.left);
  figure("after").textContent = told.fits ? number(told.left_after) : "it does not fit";
  place("sentence").textContent = sentence(told);
  picture(place("picture"), told);
  showCode(told.code);
  showFree(told);
  const short = tooMuch(told);
  tell(short, place("refused"));
  place("go").disabled = Boolean(short);
}

function nothingKnown() {
  for (const name of ["cost", "after"]) figure(name).textContent = "…";
  place("sentence").textContent = "";
  place("free").hidden = true;
  picture(place("picture"), null);
}

function sentence(told) {
  const asked = told.expected.map((one) => one.question).join("; ");
  const cost = `would cost ${number(told.cost)} of the ${number(told.left)} that are left.`;
  return `${asked.charAt(0).toUpperCase()}${asked.slice(1)} ${cost}`;
}

/** Not an alarm: it says what would fit. */
function tooMuch(told) {
  const own = data.account.own.left;
  const cost = Number(told.cost);
  if (!told.fits) return { what: `this needs ${number(cost)}, and ${number(told.left)} is left.`, do: fitting(told.left) };
  if (own !== null && cost > Number(own)) return { what: `this needs ${number(cost)}, and your share has ${number(own)} left.`, do: fitting(own) };
  return null;
}

const fitting = (left) => Number(left) > 0 ? `Move epsilon to at most ${number(left, 3)}, or ask for a larger error.` : "Nothing more can be asked; what was answered stays free.";

/** What follows from answers that were given already. */
function showFree(told) {
  const free = told.expected.filter((one) => one.free);
  place("free").hidden = !free.length;
  place("free").replaceChildren();
  if (!free.length) return;
  const line = document.createElement("p");
  line.textContent = `Already known, for nothing: ${free.map((one) => `${one.question}: ${one.free}`).join("; ")}.`;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "second-choice";
  button.textContent = "Take it, free";
  button.addEventListener("click", derive);
  place("free").append(line, button);
}

async function derive() {
  const told = await post(`${at}/derivations`, question.asked());
  if (told) answered(told);
}

async function ask(body, again) {
  const more = again ? {} : { "Idempotency-Key": (sending ??= key()) };
  place("go").disabled = true;
  const told = await post(`${at}/answers`, body, more);
  place("go").disabled = false;
  if (!told) return;
  sending = null;
  answered(told);
  await refresh(told);
}

/** After an answer: the account has moved, and the history has grown. */
async function refresh(told) {
  for (const [name, one] of Object.entries(told.identification)) meter(name, { now: one.after, ceiling: one.ceiling });
  const now = await get(at);
  if (now) data.account = now.account;
  if (figure("own") && now) figure("own").textContent = number(now.account.own.left);
  await history.again();
  preview(false);
}

const history = showHistory(at, data.history, (again) => ask(again, true));

place("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  ask({ ...question.asked(), ...wishes.wish() }, false);
});

changed(true);
