// Conversion between rho and epsilon for a number of possible values: sliders, the curve, and the sum of several answers.

import { show } from "./chart.js";
import { chance, element, fill, number } from "./elements.js";
import { address, at, latest, spell, text } from "./risk_requests.js";
import { quietly, tell } from "./api.js";

const STEPS = 1000;
const ANSWERS = [1, 2, 3, 5, 10, 20, 50];
let universes = [];
let curve = null;
let source = "rho"; // which of the two the user set

export function startConversion(view) {
  universes = view.universes;
  at("universe").addEventListener("change", choose);
  at("worlds").addEventListener("input", () => { at("universe").value = ""; draw(); });
  for (const name of ["rho", "epsilon"]) {
    at(name).addEventListener("input", () => { source = name; convert(); });
    at(`${name}-slider`).addEventListener("input", () => slid(name));
  }
  at("each").addEventListener("input", addUp);
  at("conversion").addEventListener("submit", (event) => event.preventDefault());
  draw();
}

function choose() {
  const universe = universes[at("universe").value];
  if (!universe) return;
  at("worlds").value = universe.worlds;
  if (universe.rho) at("rho").value = universe.rho;
  source = "rho";
  draw();
}

const draw = latest(async (stillLatest) => {
  const { value, error } = await quietly("GET", address("/risk/curve", { worlds: text("worlds") }));
  if (!stillLatest()) return;
  curve = value ?? null;
  if (error) return refused(error);
  at("blind").textContent = `A random guess is right with probability ${chance(curve.blind_guess)}, so rho must be larger.`;
  convert();
  addUp();
});

const convert = latest(async (stillLatest) => {
  const query = { worlds: text("worlds"), [source]: text(source) };
  const { value, error } = await quietly("GET", address("/risk/conversion", { ...query, charts: true }));
  if (!stillLatest()) return;
  if (error) return refused(error);
  const other = source === "rho" ? "epsilon" : "rho";
  at(other).value = String(Number(Number(value[other]).toPrecision(4)));
  at("verdict").textContent = value.says.charAt(0).toUpperCase() + value.says.slice(1);
  moveSliders();
  show("curve", value.charts.curve);
  spell("conversion", { conversion: query });
  explain(value.rho, stillLatest);
});

async function explain(rho, stillLatest) {
  const { value, error } = await quietly("GET", address("/risk/meaning", { worlds: text("worlds"), rho: source === "rho" ? rho : chance(rho) }));
  if (!stillLatest()) return;
  tell(null, at("conversion-problem"));
  at("meaning").replaceChildren(...(error ? [] : value.says).map((line) => element("li", {}, line)));
}

function refused(error) {
  tell(error, at("conversion-problem"));
  at("verdict").textContent = "";
  at("meaning").replaceChildren();
}

/** The slider of rho goes from a random guess to 1 on a log scale; that of epsilon goes linearly to the end of the curve. */
function slid(name) {
  if (!curve) return;
  const part = Number(at(`${name}-slider`).value) / STEPS;
  const most = curve.points.at(-1).epsilon;
  const value = name === "rho" ? curve.blind_guess ** (1 - Math.min(part, 0.999)) : part * most;
  at(name).value = String(Number(value.toPrecision(3)));
  source = name;
  convert();
}

function moveSliders() {
  if (!curve) return;
  const rho = Math.max(Number(at("rho").value), curve.blind_guess);
  at("rho-slider").value = String(STEPS * (1 - Math.log(rho) / Math.log(curve.blind_guess)));
  at("epsilon-slider").value = String((STEPS * Number(at("epsilon").value)) / curve.points.at(-1).epsilon);
}

const addUp = latest(async (stillLatest) => {
  const each = Number(text("each"));
  if (!(each > 0)) return;
  const totals = ANSWERS.map((count) => String(Number((count * each).toPrecision(12))));
  const conversions = await Promise.all(totals.map((epsilon) => quietly("GET", address("/risk/conversion", { worlds: text("worlds"), epsilon }))));
  if (!stillLatest() || conversions.some((universe) => universe.error)) return;
  const rows = conversions.map(({ value }, index) => [number(ANSWERS[index]), number(totals[index]), chance(value.rho), chance(value.yes_no)]);
  fill(at("several"), ["answers", "total loss, epsilon", "identification at most", "yes/no certainty at most"], rows);
});
