// rho, epsilon and error: one is wished for, the other two follow.

import { plainly } from "./elements.js";
import { aboveZero, fieldError } from "./field_errors.js";

const NAMES = ["rho", "epsilon", "error"];
const STEPS = 1000;
const UNKNOWN = {
  rho: "The policy promises a loss, not an identification: there is no rho here.",
  error: "How far this answer may be off depends on the data, or it is several answers: choose rho or epsilon.",
};

/** Sliders on a log scale with a number beside each; `changed` is called when the wish is another. */
export function sliders({ identified, first }, changed) {
  const state = { chosen: "epsilon", value: first, ends: {}, open: { rho: identified, epsilon: true, error: true } };
  const parts = Object.fromEntries(NAMES.map((name) => [name, found(name)]));
  const choose = (name, value) => {
    state.chosen = name;
    state.value = value;
    mark(state, parts);
    changed();
  };
  for (const name of NAMES) listen(name, parts[name], state, choose);
  parts.epsilon.number.value = String(first);
  mark(state, parts);
  return {
    wish: () => ({ [state.chosen]: plainly(state.value) }),
    check: () => check(state, parts),
    state: () => ({ [state.chosen]: parts[state.chosen].number.value }),
    restore: (kept) => restore(state, parts, kept),
    between: (least, most) => between(state, parts, least, most),
    follow: (sums) => follow(state, parts, sums),
  };
}

function found(name) {
  const id = (part) => document.getElementById(`${name}-${part}`);
  const box = document.getElementById(`wish-${name}`);
  return { box, slider: id("slider"), number: id("number"), why: box.querySelector('[data-part="why"]') };
}

function listen(name, part, state, choose) {
  part.slider.addEventListener("input", () => {
    const value = toValue(Number(part.slider.value), state.ends[name]);
    part.number.value = shown(value);
    choose(name, Number(part.number.value));
  });
  part.number.addEventListener("input", () => choose(name, Number(part.number.value)));
}

/** Whether the wish is a number above 0; the field says so where it is not. */
function check(state, parts) {
  for (const name of NAMES) fieldError(parts[name].number, name === state.chosen ? aboveZero(parts[name].number) : null);
  return aboveZero(parts[state.chosen].number) === null;
}

/** The wish as it was: what cannot be wished for here is found out by the next preview. */
function restore(state, parts, kept) {
  const [name, value] = Object.entries(kept)[0];
  if (!parts[name]) return;
  parts[name].number.value = value;
  state.chosen = name;
  state.value = Number(value);
  mark(state, parts);
}

/** The wish is marked; what is not known beforehand cannot be wished for, and says why. */
function mark(state, parts, fresh = false) {
  const ends = state.ends.error;
  const strange = state.chosen === "error" && ends && (state.value < ends[0] || state.value > ends[1]); // of another question
  if (!state.open[state.chosen] || (fresh && strange)) {
    state.chosen = "epsilon";
    state.value = Number(parts.epsilon.number.value);
  }
  for (const name of NAMES) {
    const { box, slider, number, why } = parts[name];
    const closed = !state.open[name];
    box.classList.toggle("chosen", state.chosen === name);
    box.classList.toggle("closed", closed);
    slider.disabled = number.disabled = closed;
    why.hidden = !closed;
    why.textContent = closed ? UNKNOWN[name] ?? "" : "";
    if (closed) number.value = "";
  }
}

/** The ends of the sliders for a question. */
function between(state, parts, least, most) {
  if (!least || !most) return;
  for (const name of NAMES) {
    const known = least[name] !== null && most[name] !== null;
    state.open[name] = known;
    if (known) state.ends[name] = [Math.max(Math.min(least[name], most[name]), 1e-12), Math.max(least[name], most[name], 1e-12)];
  }
  mark(state, parts, true);
}

/** The other two take what the preview says. */
function follow(state, parts, sums) {
  for (const name of NAMES) {
    if (!sums || sums[name] === null || !state.open[name]) continue;
    const value = name === state.chosen ? state.value : sums[name];
    if (name !== state.chosen) parts[name].number.value = shown(value);
    if (document.activeElement !== parts[name].slider) parts[name].slider.value = String(toStep(value, state.ends[name]));
    parts[name].slider.setAttribute("aria-valuetext", `${name} ${shown(value)}`);
  }
}

function toValue(step, ends) {
  if (!ends) return step / STEPS;
  return Math.exp(Math.log(ends[0]) + (step / STEPS) * (Math.log(ends[1]) - Math.log(ends[0])));
}

function toStep(value, ends) {
  if (!ends || ends[0] === ends[1] || !(value > 0)) return STEPS / 2;
  return Math.round((STEPS * (Math.log(value) - Math.log(ends[0]))) / (Math.log(ends[1]) - Math.log(ends[0])));
}

const shown = (value) => String(Number(value.toPrecision(4)));
