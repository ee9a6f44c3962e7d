// The estimated distribution of the true answers, with its band and the raw reports.

import { show as showChart } from "./chart.js";
import { showCode } from "./code.js";
import { element } from "./elements.js";
import { timed } from "./live.js";
import { withOptions } from "./snippets.js";
import { quietly, tell } from "./api.js";

const at = (id) => document.getElementById(id);

/** Return a function that estimates again. */
export function distribution(page, current) {
  if (!at("question")) return () => {};
  async function estimate() {
    const question = at("question").value, ordered = page.ordered.includes(question);
    at("methods").hidden = !ordered;
    const method = ordered ? at("method").value : "";
    showCode(withOptions(page.all_codes[`distribution ${question}`], method ? [`method="${method}"`] : [], ["--method", method]));
    if (!current().reports) return;
    const address = `${page.at}/distributions/${question}?method=${method}&charts=true`;
    const { value, error } = await timed(at("estimating"), `Estimating ${question}`, () => quietly("GET", address));
    tell(error);
    if (value) show(value);
  }
  at("distribution-form").addEventListener("submit", (event) => { event.preventDefault(); estimate(); });
  at("question").addEventListener("change", estimate);
  at("method").addEventListener("change", estimate);
  return estimate;
}

function show(estimated) {
  showChart("distribution", estimated.charts.distribution);
  at("sure").textContent = `From ${estimated.reports.toLocaleString("en")} reports, by ${estimated.method}: ${estimated.sure}.`;
  at("warnings").replaceChildren(...estimated.warnings.map((text) => element("li", {}, text)));
}
