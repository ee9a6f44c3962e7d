// The identification meter: now, after this query, limit.

import { chance } from "./elements.js";

/** Update a meter: meter("age", {now, after, ceiling}); after is null if there is no query. */
export function meter(name, { now, after = null, ceiling }) {
  for (const place of document.querySelectorAll(".meter")) {
    if (place.dataset.meter !== name) continue;
    place.dataset.now = now;
    const part = (part) => place.querySelector(`[data-part="${part}"]`);
    part("now").textContent = chance(now);
    part("after").textContent = after === null ? "" : ` → ${chance(after)}`;
    const wide = (value) => String(Math.min(1000, Math.max(0, (1000 * value) / ceiling)).toFixed(1));
    place.querySelector("rect.now").setAttribute("width", wide(now));
    place.querySelector("rect.after").setAttribute("width", wide(after ?? now));
    place.classList.toggle("over", after !== null && after > ceiling);
    const said = `${name}: ${chance(now)}${after === null ? "" : `, ${chance(after)} after this query`}, limit ${chance(ceiling)}`;
    place.querySelector("svg").setAttribute("aria-label", said);
  }
}
