// Synthesize: choose a budget and see its price; only the tables of the preview can be created; then follow the progress.

import { showCode } from "./code.js";
import { confirmed } from "./confirmation.js";
import { chance, element, fill, number, shortUnit } from "./elements.js";
import { aboveZero, fieldError } from "./field_errors.js";
import { meter } from "./meter.js";
import { listen, showSummaries } from "./synthesize_summary.js";
import { watch, refresh } from "./job_watch.js";
import { key, quietly, tell, view } from "./api.js";

const PAUSE = 150; // milliseconds without a change before a preview is requested
const STEPS = 1000;
const page = view();
const base = `/v1/data/${page.name}/syntheses`;
const form = document.getElementById("wanted");
const at = (id) => document.getElementById(id);
let version = 0;
let waiting = null;
let offered = null; // {quoted, body, key}: the preview on the screen, which can be started

const by = () => form.elements.by.value;
const unit = shortUnit(page.form?.unit);
const withDelta = () => by() === "epsilon" && page.form.unit === "z"; // an epsilon of a budget in Z needs a delta

/** The ends of the slider. */
function ends() {
  if (by() === "rho") return page.form.rho;
  if (withDelta()) return { least: 0, most: page.form.epsilon_left || 1 };
  const left = Number(page.form.left) / (by() === "share" ? Number(page.account.ceiling) : 1);
  return { least: 0, most: left > 0 ? left : 1 };
}

function showEnds() {
  const { least, most } = ends();
  at("budget-name").textContent = { rho: "rho of all tables", share: "share of the total budget", z: "Z per table", epsilon: "epsilon per table" }[by()];
  if (at("delta-part")) at("delta-part").hidden = !withDelta();
  at("budget-ends").textContent = by() === "rho"
    ? `from ${number(least, 3)} (a random guess) to ${number(most, 3)} (the promise)`
    : `from 0 to ${number(most, 3)}, the remaining budget`;
}

function fromSlider() {
  const { least, most } = ends();
  const part = Math.max(1, Number(at("slider").value)) / STEPS;
  at("budget").value = String(Number((least + part * (most - least)).toPrecision(3)));
}

function toSlider() {
  const { least, most } = ends();
  at("slider").value = String(Math.round((STEPS * (Number(at("budget").value) - least)) / (most - least)));
}

/** The form's values as a request body. */
function requestBody() {
  const body = { [by()]: at("budget").value.trim(), tables: Number(at("tables").value) };
  for (const name of ["rows", "seed"]) if (at(name).value) body[name] = Number(at(name).value);
  if (withDelta()) body.delta = at("delta").value.trim();
  if (at("target").value) body.target = at("target").value;
  const boxes = [...form.querySelectorAll('input[name="column"]')];
  const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
  if (chosen.length < boxes.length) body.columns = chosen;
  return body;
}

/** Whether every field is valid; invalid fields show an error. */
function valid() {
  const whole = (input, least) => (input.validity.badInput || input.value === "" || !Number.isInteger(Number(input.value)) || Number(input.value) < least ? `Enter a whole number, at least ${least}.` : null);
  const free = (input, least) => (input.value === "" && !input.validity.badInput ? null : whole(input, least));
  const errors = [[at("budget"), aboveZero(at("budget"))], [at("tables"), whole(at("tables"), 1)], [at("rows"), free(at("rows"), 1)], [at("seed"), free(at("seed"), 0)]];
  if (withDelta()) errors.unshift([at("delta"), aboveZero(at("delta"))]);
  for (const [input, text] of errors) fieldError(input, text);
  if (errors.some(([input, text]) => text && at("more").contains(input))) at("more").open = true;
  return errors.every(([, text]) => !text);
}

/** The form has changed: the price on the screen is outdated, and nothing can be started until the new price is shown. */
function changed() {
  version += 1;
  offer(null);
  clearTimeout(waiting);
  at("preview").classList.add("stale");
  if (valid()) waiting = setTimeout(preview, PAUSE);
  else part("cost").textContent = "Correct the marked fields.";
}

function offer(quoted, body) {
  offered = quoted?.fits ? { quoted, body, key: key() } : null;
  if (at("start")) at("start").disabled = !offered;
}

async function preview() {
  const mine = version, body = requestBody();
  const { value, error } = await quietly("POST", `${base}/previews`, body);
  if (mine !== version) return; // a newer preview is loading
  at("preview").classList.remove("stale");
  tell(error);
  if (value) showPreview(value);
  else part("cost").textContent = "These tables cannot be created. See the message above.";
  offer(value, body);
}

const part = (name) => document.querySelector(`#preview [data-part="${name}"]`);

function showPreview(quoted) {
  page.form.left = quoted.left;
  showEnds();
  toSlider();
  const cost = number(quoted.cost);
  part("cost").replaceChildren(
    "Costs ", element("strong", {}, `${unit} ${cost}`), ` of ${number(quoted.left)} remaining`,
    quoted.fits ? `; ${number(quoted.left_after)} remaining afterwards.` : ". The cost exceeds the remaining budget.",
  );
  part("cost").classList.toggle("what", !quoted.fits);
  for (const [name, one] of Object.entries(quoted.identification)) meter(name, one);
  document.querySelector('[data-figure="yes-no"]').textContent = `${chance(quoted.yes_no.now)} → ${chance(quoted.yes_no.after)}`;
  const atDelta = document.querySelector('[data-figure="at-delta"]');
  if (atDelta) atDelta.textContent = `${number(atDelta.dataset.now, 3)} → ${number(quoted.epsilon_at_delta, 3)}`;
  part("model").textContent = `Learns ${quoted.columns.join(", ")} with the model ${quoted.model} (${quoted.why}).`;
  fill(part("stages"), [`part of the loss, ${quoted.shares}`, "stage"], quoted.stages.map((stage) => [`${number(100 * stage.share, 3)}%`, `${stage.name}: ${stage.says}`]));
  part("notes").textContent = quoted.notes.join("; ");
  part("promise").textContent = `Promise: ${quoted.promise}.`;
  if (at("start")) at("start").textContent = `Create ${quoted.tables === 1 ? "the table" : `${quoted.tables} tables`} for ${unit} ${cost}`;
  showCode(quoted.code);
}

/** A synthesis has ended: its tables are on the page, and the price of the next one has changed. */
function ended() {
  changed();
  showSummaries(base);
}

/** Start the synthesis of the preview, at its price. */
async function start() {
  const bought = offered;
  if (!bought || !(await confirmed(Number(bought.quoted.cost), Number(bought.quoted.left), ["synthesis", "syntheses"], bought.quoted.unit)) || bought !== offered) return;
  at("start").disabled = true;
  const { value, error } = await quietly("POST", base, { ...bought.body, price: bought.quoted.cost }, { "Idempotency-Key": bought.key });
  tell(error);
  if (value) {
    offered = null;
    watch(base, value, ended);
    refresh(["earlier"]);
  } else if (error.code === "unreachable") at("start").disabled = false; // the same key is sent again: the synthesis runs only once
  else changed();
}

const payments = new Map(); // keys by job and price, so that a charge whose response was lost is not repeated

async function pay(details) {
  const input = details.querySelector("input"), button = details.querySelector("button"), epsilon = input.value.trim();
  fieldError(input, aboveZero(input));
  if (aboveZero(input)) return;
  const own = page.account.own.left, left = Math.min(Number(page.form.left), own === null ? Infinity : Number(own));
  if (!(await confirmed(paidCost(epsilon), left, ["measurement", "measurements"], page.form.unit)) || epsilon !== input.value.trim()) return;
  const name = `${details.dataset.job} ${epsilon}`;
  payments.set(name, payments.get(name) ?? key());
  button.disabled = true;
  const { value, error } = await quietly("POST", `${base}/${details.dataset.job}/paid-quality`, { epsilon }, { "Idempotency-Key": payments.get(name) });
  button.disabled = false;
  tell(error);
  if (error?.code !== "unreachable") payments.delete(name);
  if (!value) return;
  details.querySelector('[data-part="told"]').replaceChildren(...value.says.split("\n").flatMap((line) => [line, element("br")]));
  await refresh(["account"]);
  changed();
}

/** The price of a measurement, at most: epsilon; or the Z of two numbers that split it, each with the square of its part / 8. */
const paidCost = (epsilon) => (page.form.unit === "z" ? Number(epsilon) ** 2 / 16 : Number(epsilon));

/** Show the price in the button of a measurement. */
function priced(details) {
  const input = details.querySelector("input"), problem = aboveZero(input);
  fieldError(input, problem);
  const button = details.querySelector("button");
  button.disabled = Boolean(problem);
  button.textContent = problem ? "Spend and measure" : page.form.unit === "z" ? `Spend Z ${number(paidCost(input.value))} and measure` : `Spend epsilon ${input.value.trim()} and measure`;
}

/** Enter in a field moves to the preview; it never starts a synthesis. */
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.target.tagName !== "INPUT" || !event.target.closest("#wanted, details.paid")) return;
  event.preventDefault();
  if (event.target.closest("#wanted")) at("preview").focus();
});
document.addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("details.paid form button");
  if (button) pay(button.closest("details.paid"));
});
document.addEventListener("input", (event) => {
  const details = event.target.closest?.("details.paid");
  if (details) priced(details);
});
at("start")?.addEventListener("click", start);
form?.addEventListener("input", (event) => {
  if (event.target.name === "by") {
    showEnds();
    fromSlider();
  } else if (event.target === at("slider")) fromSlider();
  else if (event.target === at("budget")) toSlider();
  changed();
});

if (form) {
  showEnds();
  toSlider();
  changed();
  const open = page.jobs.find((job) => job.state === "waiting" || job.state === "running");
  if (open) watch(base, open, ended);
  listen(base);
  showSummaries(base);
}
