// The expected error: the noise around 0 and its 95% interval.
// The noise of one number has a (discrete) Laplace distribution: |noise| is within its scale times log 20 with 95% probability.

import { fill, number } from "./elements.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDE = 600;
const BASE = 150; // where the axis lies
const HIGH = 135;
const SHARES = [0.5, 0.8, 0.9, 0.95, 0.99];

/** Draw a preview; nothing where there is none, or where the error depends on the data. */
export function picture(place, told) {
  const part = (name) => place.querySelector(`[data-part="${name}"]`);
  const svg = place.querySelector("svg");
  const only = told?.expected.length === 1 ? told.expected[0] : null;
  const known = only && only.error !== null && only.error > 0;
  svg.toggleAttribute("hidden", !known);
  place.querySelector("details").hidden = !known;
  const title = said(told, only);
  part("title").textContent = title;
  part("about").textContent = only?.caution ? sentence(only.caution) : "";
  svg.setAttribute("aria-label", title);
  if (!known) return;
  const scale = only.error / -Math.log(1 - told.confidence);
  draw(svg, only.error, scale);
  fill(part("table"), ["confidence", "within"], SHARES.map((share) => [`${100 * share}%`, -scale * Math.log(1 - share)]));
}

function said(told, only) {
  if (!told) return "Expected error";
  const often = `${Math.round(1000 * told.confidence) / 10}%`;
  if (!only) return `The loss is split equally between ${told.expected.length} answers`;
  if (only.error === null) return "The error depends on the data";
  const asked = `${only.question.charAt(0).toUpperCase()}${only.question.slice(1)}`;
  return `${asked} is within ${number(only.error)}${rows(only) ? " rows" : ""} of the true value with ${often} confidence`;
}

const rows = (only) => only.question.startsWith("the number of rows") || only.question.startsWith("the histogram");
const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

function draw(svg, error, scale) {
  const reach = 1.7 * error;
  const x = (value) => WIDE / 2 + (value / reach) * (WIDE / 2 - 20);
  const y = (value) => BASE - HIGH * Math.exp(-Math.abs(value) / scale);
  const parts = [
    shape("path", { class: "noise", d: area(x, y, -reach, reach) }),
    shape("path", { class: "within", d: area(x, y, -error, error) }),
    shape("line", { class: "axis", x1: 0, x2: WIDE, y1: BASE, y2: BASE }),
  ];
  for (const end of [-error, error]) parts.push(shape("line", { class: "end", x1: x(end), x2: x(end), y1: 20, y2: BASE }));
  for (const [value, text] of [[-error, `−${number(error)}`], [0, "true value"], [error, `+${number(error)}`]]) {
    const label = shape("text", { x: x(value), y: BASE + 24 });
    label.textContent = text;
    parts.push(label);
  }
  svg.replaceChildren(...parts);
}

function area(x, y, from, to) {
  const steps = 80;
  const points = Array.from({ length: steps + 1 }, (_, place) => from + ((to - from) * place) / steps);
  if (from < 0 && to > 0) points.splice(steps / 2, 1, 0);
  const line = points.map((value) => `${x(value).toFixed(1)},${y(value).toFixed(1)}`).join("L");
  return `M${x(from).toFixed(1)},${BASE}L${line}L${x(to).toFixed(1)},${BASE}Z`;
}

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}
