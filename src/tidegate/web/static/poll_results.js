// Results of a poll: the charts are in the page; here their tips and keys.

import { prepare } from "./chart.js";

for (const plot of document.querySelectorAll(".result .plot")) prepare(plot);
