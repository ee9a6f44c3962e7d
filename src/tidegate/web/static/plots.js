// Tips and keyboard access for charts that the page was rendered with.

import { prepare } from "./chart.js";

for (const plot of document.querySelectorAll(".plot")) prepare(plot);
