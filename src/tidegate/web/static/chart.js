// Charts are drawn by the service as SVG. Here: put one into its figure, tips under the pointer, and marks by keyboard.

import { element, fill } from "./elements.js";

/** Show a chart {title, svg, table} in the figure of that id; null shows none. */
export function show(id, chart) {
  const figure = document.getElementById(id);
  const part = (name) => figure.querySelector(`[data-part="${name}"]`);
  part("title").textContent = chart?.title ?? "";
  part("plot").replaceChildren(...drawing(chart?.svg ?? ""));
  prepare(part("plot"));
  if (chart?.table) fill(part("table"), chart.table.columns, chart.table.rows);
  figure.querySelector("details").hidden = !chart?.table;
}

/** The elements of a drawing: its own document runs no script and loads nothing. */
const drawing = (svg) => [...new DOMParser().parseFromString(svg, "text/html").body.childNodes].map((node) => document.adoptNode(node));

/** The marks that have a tip, of the drawing that is shown. */
const marks = (plot) => [...plot.querySelectorAll("[data-tip]")].filter((mark) => mark.getClientRects().length);

export function prepare(plot) {
  for (const title of plot.querySelectorAll("g title")) {
    title.parentNode.dataset.tip = title.textContent;
    title.remove(); // or the browser shows it as well
  }
  if (!plot.querySelector("[data-tip]")) return plot.removeAttribute("tabindex");
  plot.tabIndex = 0;
  if (plot.dataset.ready) return;
  plot.dataset.ready = "yes";
  plot.setAttribute("role", "group");
  plot.setAttribute("aria-label", "Chart: arrow keys read its values");
  plot.addEventListener("pointermove", (event) => tip(plot, event.target.closest?.("[data-tip]")));
  plot.addEventListener("pointerleave", () => tip(plot, null));
  plot.addEventListener("blur", () => tip(plot, null));
  plot.addEventListener("keydown", (event) => move(plot, event));
}

function move(plot, event) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") tip(plot, null);
  if (!step) return;
  event.preventDefault();
  const all = marks(plot), now = all.indexOf(plot.querySelector(".focused"));
  tip(plot, all[now < 0 ? (step > 0 ? 0 : all.length - 1) : (now + step + all.length) % all.length]);
}

/** Show the tip of a mark above it, and mark it. */
function tip(plot, mark) {
  plot.querySelector(".focused")?.classList.remove("focused");
  let box = plot.querySelector(".tip");
  if (!mark) return box?.remove();
  mark.classList.add("focused");
  if (!box) plot.append(box = element("div", { class: "tip", role: "status" }));
  box.textContent = mark.dataset.tip;
  const [around, here] = [plot.getBoundingClientRect(), mark.getBoundingClientRect()];
  const left = Math.min(Math.max(0, here.left - around.left + here.width / 2 - box.offsetWidth / 2), around.width - box.offsetWidth);
  box.style.left = `${Math.max(0, left)}px`;
  box.style.top = `${Math.max(0, here.top - around.top - box.offsetHeight - 6)}px`;
}
