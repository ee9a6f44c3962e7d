// Verify the ledger and show the result.

import { element } from "./elements.js";
import { quietly, tell } from "./api.js";

const verdict = document.getElementById("verdict");
const button = document.querySelector("#verify button");

document.getElementById("verify").addEventListener("submit", async (event) => {
  event.preventDefault();
  const head = document.getElementById("noted").value.trim().toLowerCase();
  if (head && !/^[0-9a-f]{64}$/.test(head)) return say(element("p", { class: "quiet" }, "A head has 64 hexadecimal digits (0 to 9, a to f)."));
  button.disabled = true;
  const begun = performance.now();
  const { value, error } = await quietly("GET", `/v1/ledger/verification?head=${head}`);
  button.disabled = false;
  tell(error);
  if (value) outcome(value, head, (performance.now() - begun) / 1000);
});

function say(...parts) {
  verdict.replaceChildren(...parts);
}

/** The only red text of the console: a promise is broken. */
function outcome(result, head, seconds) {
  const total = result.entries.toLocaleString("en");
  if (result.holds) {
    const noted = head ? " The head that you noted is one of them." : "";
    return say(element("p", { class: "good" }, `All ${total} entries are valid.`), element("p", { class: "quiet small" }, `Hashes, chain, prices and totals were checked in ${seconds.toFixed(1)} s.${noted}`));
  }
  const problems = result.problems.map((problem) => element("li", {}, problem));
  const what = `The ledger is not valid: ${result.problems.length} problem${result.problems.length === 1 ? "" : "s"} in ${total} entries.`;
  return say(element("p", { class: "broken" }, what), element("ul", {}, ...problems), element("p", {}, "Do not release anything more before you have compared the ledger, and a head that you entered, with an export or a backup."));
}
