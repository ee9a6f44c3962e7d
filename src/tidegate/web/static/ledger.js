// Verify the ledger, and say in words what came of it.

import { element } from "./elements.js";
import { quietly, tell } from "./talk.js";

const verdict = document.getElementById("verdict");
const button = document.querySelector("#verify button");

document.getElementById("verify").addEventListener("submit", async (event) => {
  event.preventDefault();
  const head = document.getElementById("noted").value.trim().toLowerCase();
  if (head && !/^[0-9a-f]{64}$/.test(head)) return say(element("p", { class: "quiet" }, "A head has 64 letters and digits, from 0 to 9 and from a to f."));
  button.disabled = true;
  const begun = performance.now();
  const { value, error } = await quietly("GET", `/ledger/verification?head=${head}`);
  button.disabled = false;
  tell(error);
  if (value) outcome(value, head, (performance.now() - begun) / 1000);
});

function say(...parts) {
  verdict.replaceChildren(...parts);
}

/** Red only here: a promise is broken. */
function outcome(told, head, seconds) {
  const many = told.entries.toLocaleString("en");
  if (told.holds) {
    const noted = head ? " The head that you noted is among them." : "";
    return say(element("p", { class: "good" }, `${many} entries hold.`), element("p", { class: "quiet small" }, `Hashed, chained, priced and added up again in ${seconds.toFixed(1)} s.${noted}`));
  }
  const problems = told.problems.map((problem) => element("li", {}, problem));
  const what = `The ledger does not hold: ${told.problems.length} problem${told.problems.length === 1 ? "" : "s"} in ${many} entries.`;
  return say(element("p", { class: "broken" }, what), element("ul", {}, ...problems), element("p", {}, "Give nothing more out. Compare with an export or a backup, from the first entry that is named here."));
}
