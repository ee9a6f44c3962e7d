// Conversion between rho and the loss that it allows, under either guarantee: sliders, both readings, charts, several answers.

import { show } from "./chart.js";
import { chance, element, fill, number, shortUnit } from "./elements.js";
import { address, at, latest, spell, text } from "./risk_requests.js";
import { quietly, tell } from "./api.js";

const STEPS = 1000;
const ANSWERS = [1, 2, 3, 5, 10, 20, 50];
const EACH = { epsilon: "0.1", z: "0.01" }; // the loss per answer when the guarantee changes
let universes = [];
let curve = null;
let source = "rho"; // which of the two the user set

const unit = () => (at("guarantee").value === "average" ? "z" : "epsilon");

/** The values that every request shares. */
const shared = () => ({ worlds: text("worlds"), within: text("within") || "0", guarantee: at("guarantee").value });

export function startConversion(view) {
  universes = view.universes;
  at("universe").addEventListener("change", choose);
  for (const name of ["worlds", "within"]) at(name).addEventListener("input", () => { at("universe").value = ""; draw(); });
  at("guarantee").addEventListener("change", () => {
    at("each").value = EACH[unit()];
    source = "rho"; // a loss of the other guarantee is in another unit
    draw();
  });
  for (const name of ["rho", "loss"]) {
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
  at("within").value = universe.within;
  if (universe.rho) at("rho").value = universe.rho;
  if (universe.guarantee && universe.guarantee !== at("guarantee").value) {
    at("guarantee").value = universe.guarantee;
    at("each").value = EACH[unit()];
  }
  source = "rho";
  draw();
}

const draw = latest(async (stillLatest) => {
  for (const label of document.querySelectorAll("[data-unit]")) label.textContent = shortUnit(unit());
  const { value, error } = await quietly("GET", address("/v1/risk/curve", shared()));
  if (!stillLatest()) return;
  curve = value ?? null;
  if (error) return refused(error);
  const near = Number(text("within")) ? ` to within ${number(text("within"))} steps` : "";
  at("blind").textContent = `A random guess${near} is right with probability ${chance(curve.blind_guess)}, so rho must be larger.`;
  convert();
  addUp();
});

const convert = latest(async (stillLatest) => {
  const query = { ...shared(), [source === "rho" ? "rho" : unit()]: text(source) };
  const { value, error } = await quietly("GET", address("/v1/risk/conversion", { ...query, charts: true }));
  if (!stillLatest()) return;
  if (error) return refused(error);
  const [other, found] = source === "rho" ? ["loss", value[unit()]] : ["rho", value.rho];
  at(other).value = String(Number(Number(found).toPrecision(4)));
  at("verdict").textContent = value.says.charAt(0).toUpperCase() + value.says.slice(1);
  moveSliders();
  showReadings(value.readings);
  show("curve", value.charts.curve);
  show("errors", value.charts.errors ?? null);
  at("errors").hidden = !value.charts.errors;
  spell("conversion", { conversion: { ...query, within: Number(query.within) } });
  explain(value.rho, stillLatest);
});

/** The same rho under both guarantees, side by side. */
function showReadings(readings) {
  at("readings").closest(".scroll").hidden = !readings;
  if (!readings) return;
  const sides = [readings["worst-case"], readings.average];
  const [worst, average] = sides;
  const each = (count) => sides.map(({ errors }) => number(errors.find((point) => point.answers === count)?.error, 3));
  fill(at("readings"), ["measure", "for every response", "on average over the noise"], [
    ["limit of the total loss", `epsilon ${number(worst.epsilon)}`, `Z ${number(average.z)}`],
    ["yes/no certainty at most", ...sides.map((side) => chance(side.yes_no))],
    ["(epsilon, delta) at most", `${number(worst.epsilon_at_delta, 3)} with delta = 0`, `${number(average.epsilon_at_delta, 3)} with delta = 1e-6`],
    ["error of one answer, in ranges", ...each(1)],
    ["error of each of 100 answers", ...each(100)],
  ]);
}

async function explain(rho, stillLatest) {
  const { value, error } = await quietly("GET", address("/v1/risk/meaning", { ...shared(), rho: source === "rho" ? rho : chance(rho) }));
  if (!stillLatest()) return;
  tell(null, at("conversion-problem"));
  at("meaning").replaceChildren(...(error ? [] : value.says).map((line) => element("li", {}, line)));
}

function refused(error) {
  tell(error, at("conversion-problem"));
  at("verdict").textContent = "";
  at("meaning").replaceChildren();
}

/** The slider of rho goes from a random guess to 1 on a log scale; that of the loss goes linearly to the end of the curve. */
function slid(name) {
  if (!curve) return;
  const part = Number(at(`${name}-slider`).value) / STEPS;
  const value = name === "rho" ? curve.blind_guess ** (1 - Math.min(part, 0.999)) : part * most();
  at(name).value = String(Number(value.toPrecision(3)));
  source = name;
  convert();
}

const most = () => curve.points.at(-1)[unit()];

function moveSliders() {
  if (!curve) return;
  const rho = Math.max(Number(at("rho").value), curve.blind_guess);
  at("rho-slider").value = String(STEPS * (1 - Math.log(rho) / Math.log(curve.blind_guess)));
  at("loss-slider").value = String((STEPS * Number(at("loss").value)) / most());
}

const addUp = latest(async (stillLatest) => {
  const each = Number(text("each"));
  if (!(each > 0)) return;
  const totals = ANSWERS.map((count) => String(Number((count * each).toPrecision(12))));
  const conversions = await Promise.all(totals.map((total) => quietly("GET", address("/v1/risk/conversion", { ...shared(), [unit()]: total }))));
  if (!stillLatest() || conversions.some((conversion) => conversion.error)) return;
  const rows = conversions.map(({ value }, index) => [number(ANSWERS[index]), number(totals[index]), chance(value.rho), chance(value.yes_no)]);
  fill(at("several"), ["answers", `total loss, ${shortUnit(unit())}`, "identification at most", "yes/no certainty at most"], rows);
});
