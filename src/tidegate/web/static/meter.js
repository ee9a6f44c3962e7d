// The identification meter: now, after this query, limit.

import { chance } from "./elements.js";

/** Update a meter: meter("age", {now, after, ceiling}); after is null if there is no query. */
export function meter(name, { now, after = null, ceiling }) {
  for (const figure of document.querySelectorAll(".meter")) {
    if (figure.dataset.meter !== name) continue;
    figure.dataset.now = now;
    const part = (part) => figure.querySelector(`[data-part="${part}"]`);
    part("now").textContent = chance(now);
    part("after").textContent = after === null ? "" : ` → ${chance(after)}`;
    const widthOf = (value) => String(Math.min(1000, Math.max(0, (1000 * value) / ceiling)).toFixed(1));
    figure.querySelector("rect.now").setAttribute("width", widthOf(now));
    figure.querySelector("rect.after").setAttribute("width", widthOf(after ?? now));
    figure.classList.toggle("over", after !== null && after > ceiling);
    const label = `${name}: ${chance(now)}${after === null ? "" : `, ${chance(after)} after this query`}, limit ${chance(ceiling)}`;
    figure.querySelector("svg").setAttribute("aria-label", label);
  }
}
