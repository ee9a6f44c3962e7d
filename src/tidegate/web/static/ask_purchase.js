// Buying: only the quote on the screen, once, and after a confirmation where it is a large part of what is left.

import { confirmed } from "./confirmation.js";
import { key, quietly, tell } from "./talk.js";

const button = document.getElementById("go");

/** `left()` is what can be spent, `answered(told)` gets the answer, `stale()` asks for a new quote. */
export function buyer(at, { left, answered, stale }) {
  let offered = null; // {told, key}: what is on the screen
  let sending = false;

  function offer(told) {
    offered = told?.quote ? { told, key: key() } : null;
    button.textContent = told?.answered_before ? "Show the answer" : "Ask";
    button.disabled = sending || !offered;
  }

  async function buy() {
    const bought = offered;
    if (!bought || sending) return;
    const cost = Number(bought.told.cost);
    if (cost > 0 && !(await confirmed(cost, left(), "questions"))) return;
    if (bought !== offered) return; // the quote was renewed meanwhile: its price is to be read first
    await send(bought);
  }

  async function send(bought) {
    if (sending) return;
    sending = true;
    button.disabled = true;
    const { value, error } = await quietly("POST", `${at}/answers`, { quote: bought.told.quote, key: bought.key, charts: true });
    sending = false;
    button.disabled = !offered;
    tell(error?.code === "stale-quote" ? { what: error.what, do: "The new price is shown. Check it, then ask again." } : error);
    if (value) await answered(value);
    else if (error.code !== "unreachable") stale(); // else the same key is sent again: nothing is charged twice
  }

  /** A question of the history: its stored answer, or nothing. */
  async function again(request) {
    const { value, error } = await quietly("POST", `${at}/quotes`, request);
    const gone = value && !value.answered_before && { what: "This question has no stored answer under the current policy. Nothing was charged.", do: "Ask it as a new question." };
    tell(error || gone || null);
    if (value?.answered_before) await send({ told: value, key: key() });
  }

  button.addEventListener("click", buy);
  offer(null);
  return { offer, again };
}
