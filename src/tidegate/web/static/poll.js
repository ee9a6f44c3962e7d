// A poll: its state while it is open, and its close.

import { showCode } from "./code.js";
import { quietly, tell, view } from "./api.js";
import { live } from "./live.js";
import { untilThen } from "./poll_time.js";

const page = view(), at = (id) => document.getElementById(id);
let state = page.state;

const inSteps = (count) => (count ? `${count.toLocaleString("en")} or more` : `fewer than ${state.at_least.toLocaleString("en")}`);

function show(newState) {
  state = newState;
  const isClosed = state.state === "closed";
  at("state").textContent = state.state === "open" ? "open" : "closed";
  at("reports").textContent = state.reports.toLocaleString("en");
  at("waiting").textContent = isClosed ? "none" : inSteps(state.waiting);
  if (at("status").textContent !== state.status) at("status").textContent = state.status;
  if (state.invitations) {
    at("invitations").textContent = state.invitations.codes.toLocaleString("en");
    at("used").textContent = inSteps(state.invitations.used);
  }
  at("remaining").hidden = state.state !== "open";
  at("closes-in").textContent = untilThen(state.closes);
  if (!at("closing")) return;
  at("closing").hidden = isClosed;
  at("closed").textContent = isClosed ? "This poll is closed and accepts no more reports." : "";
}

async function reload() {
  const { value, error } = await quietly("GET", page.at);
  if (value) show(value);
  return !error && state.state !== "closed";
}

async function close() {
  at("confirm").close();
  at("close").disabled = true;
  showCode(page.all_codes.closing);
  const { value, error } = await quietly("POST", page.closing, { version: state.version });
  tell(error);
  at("close").disabled = false;
  if (value) await reload();
}

show(state);
if (state.state !== "closed") live(5, reload);
at("close")?.addEventListener("click", () => at("confirm").showModal());
at("cancel")?.addEventListener("click", () => at("confirm").close());
at("confirm-close")?.addEventListener("click", close);
