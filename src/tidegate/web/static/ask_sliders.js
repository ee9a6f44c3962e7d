// rho, the loss (epsilon or Z) and error: the user sets one, the other two follow.

import { plainly, shortUnit } from "./elements.js";
import { aboveZero, fieldError } from "./field_errors.js";

const STEPS = 1000;
const UNKNOWN = {
  rho: () => "The policy limits the loss, not the probability of identification, so rho is not available.",
  error: (unit) => `The error depends on the data, or the query has several answers. Set rho or ${shortUnit(unit)} instead.`,
};

/** Sliders on a log scale, each with a number field; `changed` is called when the value changes. */
export function sliders({ identified, first, unit }, changed) {
  const state = { unit, chosen: unit, value: first, ends: {}, open: { rho: identified, [unit]: true, error: true } };
  const parts = Object.fromEntries(["rho", unit, "error"].map((name) => [name, elementsOf(name)]));
  const choose = (name, value) => {
    state.chosen = name;
    state.value = value;
    mark(state, parts);
    changed();
  };
  for (const name of Object.keys(parts)) listen(name, parts[name], state, choose);
  parts[unit].number.value = String(first);
  mark(state, parts);
  return {
    wish: () => ({ [state.chosen]: plainly(state.value) }),
    check: () => check(state, parts),
    state: () => ({ [state.chosen]: parts[state.chosen].number.value }),
    restore: (saved) => restore(state, parts, saved),
    between: (least, most) => between(state, parts, least, most),
    follow: (sums) => follow(state, parts, sums),
  };
}

function elementsOf(name) {
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

/** Whether the value is a number above 0; otherwise the field shows an error. */
function check(state, parts) {
  for (const name of Object.keys(parts)) fieldError(parts[name].number, name === state.chosen ? aboveZero(parts[name].number) : null);
  return aboveZero(parts[state.chosen].number) === null;
}

/** Restore the value; the next preview checks whether it is possible here. */
function restore(state, parts, saved) {
  const [name, value] = Object.entries(saved)[0];
  if (!parts[name]) return;
  parts[name].number.value = value;
  state.chosen = name;
  state.value = Number(value);
  mark(state, parts);
}

/** Mark the chosen value; values that are not known in advance are disabled and show the reason. */
function mark(state, parts, fresh = false) {
  const ends = state.ends.error;
  const isOutside = state.chosen === "error" && ends && (state.value < ends[0] || state.value > ends[1]); // the value of another query
  if (!state.open[state.chosen] || (fresh && isOutside)) {
    state.chosen = state.unit;
    state.value = Number(parts[state.unit].number.value);
  }
  for (const name of Object.keys(parts)) {
    const { box, slider, number, why } = parts[name];
    const closed = !state.open[name];
    box.classList.toggle("chosen", state.chosen === name);
    box.classList.toggle("closed", closed);
    slider.disabled = number.disabled = closed;
    why.hidden = !closed;
    why.textContent = closed ? UNKNOWN[name]?.(state.unit) ?? "" : "";
    if (closed) number.value = "";
  }
}

/** Set the ends of the sliders for a query. */
function between(state, parts, least, most) {
  if (!least || !most) return;
  for (const name of Object.keys(parts)) {
    const known = least[name] !== null && most[name] !== null;
    state.open[name] = known;
    if (known) state.ends[name] = [Math.max(Math.min(least[name], most[name]), 1e-12), Math.max(least[name], most[name], 1e-12)];
  }
  mark(state, parts, true);
}

/** Set the other two to the values of the preview. */
function follow(state, parts, sums) {
  for (const name of Object.keys(parts)) {
    if (!sums || sums[name] === null || !state.open[name]) continue;
    const value = name === state.chosen ? state.value : sums[name];
    if (name !== state.chosen) parts[name].number.value = shown(value);
    if (document.activeElement !== parts[name].slider) parts[name].slider.value = String(toStep(value, state.ends[name]));
    parts[name].slider.setAttribute("aria-valuetext", `${name === state.unit ? shortUnit(name) : name} ${shown(value)}`);
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
