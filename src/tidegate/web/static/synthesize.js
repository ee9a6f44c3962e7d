// Synthesize: choose a budget and see what it comes to; start; then watch.

import { showCode } from "./code.js";
import { element, fill, number } from "./elements.js";
import { meter } from "./meter.js";
import { watch, refresh } from "./synthesize_watch.js";
import { key, post, quietly, tell, view } from "./talk.js";

const PAUSE = 150; // milliseconds without a change before the service is asked
const STEPS = 1000;
const given = view();
const base = `/data/${given.name}/syntheses`;
const form = document.getElementById("wanted");
const at = (id) => document.getElementById(id);
let asked = 0;
let waiting = null;

const by = () => form.elements.by.value ?? "epsilon";

/** From where to where the slider goes, for what it is about. */
function ends() {
  if (by() === "rho") return given.form.rho;
  const left = Number(given.form.left);
  return { least: 0, most: left > 0 ? left : 1 };
}

function showEnds() {
  const { least, most } = ends();
  at("budget-name").textContent = by() === "rho" ? "rho of all tables" : "epsilon of each table";
  at("budget-ends").textContent = by() === "rho"
    ? `from ${number(least, 3)} (a blind guess) to ${number(most, 3)} (promised)`
    : `from 0 to ${number(most, 3)}, all that is left`;
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

/** What the form asks for, as the API takes it. */
function wanted() {
  const body = { [by()]: at("budget").value.trim(), tables: Number(at("tables").value) || 1 };
  for (const name of ["rows", "seed"]) if (at(name).value) body[name] = Number(at(name).value);
  if (at("model").value !== "auto") body.model = at("model").value;
  if (at("target").value) body.target = at("target").value;
  const boxes = [...form.querySelectorAll('input[name="column"]')];
  const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
  if (chosen.length < boxes.length) body.columns = chosen;
  return body;
}

function changed() {
  clearTimeout(waiting);
  waiting = setTimeout(preview, PAUSE);
}

async function preview() {
  const mine = ++asked;
  const { value, error } = await quietly("POST", `${base}/previews`, wanted());
  if (mine !== asked) return; // a newer one is under way
  tell(error);
  if (at("start")) at("start").disabled = !value?.fits;
  if (value) showPreview(value);
  else part("cost").textContent = "This cannot be made: see above.";
}

const part = (name) => document.querySelector(`#preview [data-part="${name}"]`);

function showPreview(told) {
  given.form.left = told.left;
  showEnds();
  toSlider();
  const cost = number(told.cost);
  part("cost").replaceChildren(
    "Costs ", element("strong", {}, `epsilon ${cost}`), ` of ${number(told.left)} left`,
    told.fits ? `; ${number(told.left_after)} remain.` : ". That is more than is left: nothing can be made.",
  );
  part("cost").classList.toggle("what", !told.fits);
  for (const [name, one] of Object.entries(told.identification)) meter(name, one);
  part("model").textContent = `Learns ${told.columns.join(", ")}, by ${told.model} (${told.why}).`;
  fill(part("stages"), [`share of the loss, ${told.shares}`, "goes to"], told.stages.map((stage) => [`${number(100 * stage.share, 3)}%`, `${stage.name}: ${stage.says}`]));
  part("notes").textContent = told.notes.join("; ");
  part("promise").textContent = `Promise: ${told.promise}.`;
  if (at("start")) at("start").textContent = `Make ${told.tables === 1 ? "the table" : `${told.tables} tables`} for epsilon ${cost}`;
  showCode(told.code);
}

async function start(event) {
  event.preventDefault();
  if (!at("start") || at("start").disabled) return;
  at("start").disabled = true;
  const job = await post(base, wanted(), { "Idempotency-Key": key() });
  if (job) {
    watch(base, job, preview);
    refresh(["earlier"]);
  } else at("start").disabled = false;
}

async function pay(event) {
  const place = event.target.closest?.("details.paid");
  if (!place) return;
  event.preventDefault();
  const button = place.querySelector("button");
  button.disabled = true;
  const body = { epsilon: place.querySelector("input").value.trim() };
  const told = await post(`${base}/${place.dataset.job}/paid-quality`, body, { "Idempotency-Key": key() });
  button.disabled = false;
  if (!told) return;
  place.querySelector('[data-part="told"]').replaceChildren(...told.says.split("\n").flatMap((line) => [line, element("br")]));
  await refresh(["account"]);
  preview();
}

form?.addEventListener("submit", start);
document.addEventListener("submit", pay);
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
  preview();
  const open = given.jobs.find((job) => job.state === "waiting" || job.state === "running");
  if (open) watch(base, open, preview);
}
