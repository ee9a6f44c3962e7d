// A respondent's own record. Its key stays in this tab (sessionStorage): the service stores only a hash of it.

import { fill } from "./elements.js";
import { live, timed } from "./live.js";
import { quietly, tell, view } from "./api.js";

const { dataset, desks } = view(), form = document.getElementById("ask"), NAME = "key of the own record";
const at = (id) => document.getElementById(id);
let waits = false;

const storedKey = {
  get: () => { try { return sessionStorage.getItem(NAME) ?? ""; } catch { return ""; } },
  set: (key) => { try { if (key) sessionStorage.setItem(NAME, key); else sessionStorage.removeItem(NAME); } catch { /* private windows store nothing */ } },
};

function address(what) {
  const chosen = form.querySelector('input[name="desk"]:checked')?.value ?? desks[0].desk;
  return `/v1/data/${dataset}/desks/${chosen}/${what}`;
}

async function ask(what) {
  const key = at("key").value.trim();
  if (!key) return tell({ what: "The key of your record is missing.", do: "Enter it exactly as the data holder gave it to you." });
  const body = what === "requests" ? { keys: [key] } : { key };
  const text = what === "requests" ? "Requesting; the first request can take some seconds" : "Checking";
  const { value, error } = await timed(at("working"), text, () => quietly("POST", address(what), body), form.querySelectorAll("button"));
  tell(error);
  storedKey.set(error?.code === "not-allowed" ? "" : key);
  return value ? show(what === "requests" ? value.outcomes[0] : value, what === "status") : null;
}

/** Check again while the request is waiting; do not show refusals of this check. */
async function again() {
  if (!waits) return true;
  const { value } = await quietly("POST", address("status"), { key: at("key").value.trim() });
  if (value) show(value, true);
  return true;
}

const SAYS = {
  released: () => ["Released", "Your record has been released. It contains:"],
  withheld: ({ day }) => ["Withheld", `Your record is not among the records that were chosen for release on ${day}. The choice was made at random, once for all records. It is final: requesting again changes nothing.`],
  deferred: ({ number, ahead, later }) => {
    if (later) return ["Not chosen yet", "Your record was added after the records for release were chosen. Request it again once the data holder has opened the next selection."];
    const position = ahead === null ? `Your request has the number ${number}` : `Your request is at position ${(ahead + 1).toLocaleString("en")} in the queue`;
    return ["Waiting", `${position}. Your record will be released once doing so reveals no more about a group than the policy allows. You can withdraw the request.`];
  },
  withdrawn: () => ["Withdrawn", "Your request was withdrawn, and your record was deleted from the queue. You can request it again."],
  refused: ({ reason }) => ["Refused", `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`],
  unknown: () => ["Not requested", "You have not requested your record yet, or you withdrew your request."],
};

/** Show an outcome; the status of a key is refused only if there is no request for it. */
function show(outcome, isStatus) {
  const kind = isStatus && outcome.outcome === "refused" ? "unknown" : outcome.outcome;
  const [title, says] = SAYS[kind](outcome), card = at("outcome");
  const part = (name) => card.querySelector(`[data-part="${name}"]`);
  waits = outcome.outcome === "deferred" && !outcome.later;
  if (part("says").textContent !== says) part("says").textContent = says;
  if (part("title").textContent !== title) part("title").textContent = title;
  part("record").hidden = outcome.outcome !== "released";
  if (outcome.record) fill(part("record"), ["column", "value"], Object.entries(outcome.record).map(([name, value]) => [name, value === null ? "missing" : String(value)]));
  at("withdraw").hidden = !waits;
  card.hidden = false;
}

async function withdraw() {
  const { value, error } = await quietly("POST", address("withdrawals"), { key: at("key").value.trim() });
  tell(error);
  if (value) show(value);
  else ask("status");
}

if (form) {
  form.addEventListener("submit", (event) => { event.preventDefault(); ask(event.submitter?.value || "requests"); });
  form.addEventListener("change", () => { waits = false; at("outcome").hidden = true; });
  at("withdraw").addEventListener("click", withdraw);
  at("key").value = storedKey.get();
  if (at("key").value) ask("status");
  live(5, again);
}
