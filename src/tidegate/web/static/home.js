// The steward's home: the charts of spending were rendered with the page.

import { prepare } from "./chart.js";

for (const plot of document.querySelectorAll(".spending .plot")) prepare(plot);
