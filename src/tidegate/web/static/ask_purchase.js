// Running a query: only the quote on the screen, once, and after a confirmation if it uses much of the remaining budget.

import { confirmed } from "./confirmation.js";
import { key, quietly, tell } from "./api.js";

const button = document.getElementById("go");

/** `unit` is that of the account, `left()` is the amount that can be spent, `answered(answer)` receives the answer, `stale()` requests a new quote. */
export function buyer(at, { unit, left, answered, stale }) {
  let offered = null; // {quoted, key}: the quote on the screen
  let sending = false;

  function offer(quoted) {
    offered = quoted?.quote ? { quoted, key: key() } : null;
    button.textContent = quoted?.answered_before ? "Show answer" : "Run query";
    button.disabled = sending || !offered;
  }

  async function buy() {
    const bought = offered;
    if (!bought || sending) return;
    const cost = Number(bought.quoted.cost);
    if (cost > 0 && !(await confirmed(cost, left(), ["query", "queries"], unit))) return;
    if (bought !== offered) return; // the quote was renewed in the meantime: the user must see its price first
    await send(bought);
  }

  async function send(bought) {
    if (sending) return;
    sending = true;
    button.disabled = true;
    const load = (cursor = "") => quietly("POST", `${at}/answers${cursor && `?cursor=${cursor}`}`, { quote: bought.quoted.quote, key: bought.key, charts: true });
    const { value, error } = await load();
    sending = false;
    button.disabled = !offered;
    tell(error?.code === "stale-quote" ? { what: error.what, do: "Check the new price, then run the query again." } : error);
    if (value) await answered({ ...value, load }, bought.quoted.link);
    else if (error.code !== "unreachable") stale(); // otherwise the same key is sent again: nothing is charged twice
  }

  /** Show the stored answer of an earlier query; never charge. */
  async function again(request) {
    const { value, error } = await quietly("POST", `${at}/quotes`, request);
    const missing = value && !value.answered_before && { what: "This query has no stored answer under the current policy. Nothing was charged.", do: "Run it as a new query." };
    tell(error || missing || null);
    if (value?.answered_before) await send({ quoted: value, key: key() });
  }

  button.addEventListener("click", buy);
  offer(null);
  return { offer, again };
}
