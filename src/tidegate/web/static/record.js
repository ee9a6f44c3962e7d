// The own record. Its key stays in this tab (sessionStorage): the service keeps a hash of it only.

import { fill } from "./elements.js";
import { live, timed } from "./live.js";
import { quietly, tell, view } from "./talk.js";

const { dataset, desks } = view(), form = document.getElementById("ask"), NAME = "key of the own record";
const at = (id) => document.getElementById(id);
let waits = false;

const kept = {
  get: () => { try { return sessionStorage.getItem(NAME) ?? ""; } catch { return ""; } },
  set: (key) => { try { if (key) sessionStorage.setItem(NAME, key); else sessionStorage.removeItem(NAME); } catch { /* private windows keep nothing */ } },
};

function address(what) {
  const chosen = form.querySelector('input[name="desk"]:checked')?.value ?? desks[0].desk;
  return `/data/${dataset}/desks/${chosen}/${what}`;
}

async function ask(what) {
  const key = at("key").value.trim();
  if (!key) return tell({ what: "the key of your record is needed.", do: "Write it as the data holder gave it to you." });
  const body = what === "requests" ? { keys: [key] } : { key };
  const words = what === "requests" ? "Asking; the first request of a day may take some seconds" : "Looking";
  const { value, error } = await timed(at("working"), words, () => quietly("POST", address(what), body), form.querySelectorAll("button"));
  tell(error);
  kept.set(error?.code === "not-allowed" ? "" : key);
  return value ? show(what === "requests" ? value.outcomes[0] : value) : null;
}

/** Look again while it waits, and show no refusal for that. */
async function again() {
  if (!waits) return true;
  const { value } = await quietly("POST", address("status"), { key: at("key").value.trim() });
  if (value) show(value);
  return true;
}

const SAYS = {
  released: () => ["Released", "Your record has left. This is what it says:"],
  deferred: ({ number, ahead }) => {
    const place = ahead === null ? `Your request has the number ${number}` : `Your request is number ${(ahead + 1).toLocaleString("en")} in the queue`;
    return ["Waiting", `${place}. It will be released when that no longer tells outsiders more than it may about a group. You can withdraw it.`];
  },
  withdrawn: () => ["Withdrawn", "Your request is withdrawn, and your record is forgotten here. You can ask again."],
  refused: ({ reason }) => (reason.startsWith("nobody has asked") ? ["Not asked for", "You have not asked for your record yet, or you withdrew your request."] : ["Refused", `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`]),
};

function show(outcome) {
  const [title, says] = SAYS[outcome.outcome](outcome), place = at("outcome");
  const part = (name) => place.querySelector(`[data-part="${name}"]`);
  waits = outcome.outcome === "deferred";
  if (part("says").textContent !== says) part("says").textContent = says;
  if (part("title").textContent !== title) part("title").textContent = title;
  part("record").hidden = outcome.outcome !== "released";
  if (outcome.record) fill(part("record"), ["", "what it says"], Object.entries(outcome.record).map(([name, value]) => [name, value === null ? "missing" : String(value)]));
  at("withdraw").hidden = !waits;
  place.hidden = false;
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
  at("key").value = kept.get();
  if (at("key").value) ask("status");
  live(5, again);
}
