// The idle time of a session. Typing prolongs it, the page announces its end, and what was typed stays on the page.

import { url } from "./address.js";

const idle = Number(document.querySelector('meta[name="idle"]')?.content || 0) * 1000; // 0: there is no session to end
const WARNING = Math.min(120_000, idle / 3);
const ATTENDED = Math.min(60_000, idle / 4);
const KEY = "last request of a session";
const notice = document.getElementById("session");
let lastInput = Date.now(), lastRequest = Date.now(), typed = false, over = false, shown = "";

function stored() {
  try { return Number(localStorage.getItem(KEY)) || 0; } catch { return 0; /* private windows store nothing: tabs do not know of each other */ }
}

/** Whether somebody uses this page: requests that it repeats by itself do not prolong the session. */
export const isAttended = () => Date.now() - lastInput <= Math.max(ATTENDED, 1000);

/** Note a request that prolonged the session, for all tabs. */
export function requestSent() {
  lastRequest = Date.now();
  try { localStorage.setItem(KEY, String(lastRequest)); } catch { /* as above */ }
}

/** Whether text on this page would be lost by leaving it. A page that keeps its state in the URL loses nothing. */
export const hasTypedWork = () => typed && location.hash.length < 2;

/** Tell that the session has ended; the page stays as it is. */
export function endSession() {
  over = true;
  tell("over", ["You were signed out because nothing happened for a while. What you typed is still on this page."],
    link("Sign in in a new tab", url("/console/sign-in")), ", then come back here and continue.");
}

function link(text, address) {
  const anchor = Object.assign(document.createElement("a"), { href: address, target: "_blank", textContent: text });
  return anchor;
}

function tell(state, texts, ...rest) {
  if (!notice || shown === state) return;
  shown = state;
  notice.hidden = !state;
  const lines = texts.map((text) => Object.assign(document.createElement("p"), { textContent: text, className: "what" }));
  const last = document.createElement("p");
  last.append(...rest);
  notice.replaceChildren(...lines, last);
}

function warn(left) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Stay signed in" });
  button.addEventListener("click", prolong);
  const minutes = Math.max(1, Math.round(left / 60_000));
  const time = left < 60_000 ? "less than a minute" : `about ${minutes} minute${minutes > 1 ? "s" : ""}`;
  tell("soon", [`You will be signed out in ${time} because nothing happened for a while.`], button);
}

async function prolong() {
  lastInput = Date.now();
  if (await ask()) tell("", []);
}

/** Ask the service who is signed in. After a new sign-in in another tab, take over its CSRF token. */
async function ask() {
  const response = await fetch(url("/v1/me"), { headers: { Accept: "application/json" } }).catch(() => null);
  if (!response) return false; // not reachable: the next tick tries again
  if (response.status === 401) { endSession(); return false; }
  const me = await response.json();
  if (document.querySelector("[data-user]")?.dataset.user !== me.name) {
    tell("other", ["Another user is signed in now."], link("Open the console again", url("/console")));
    return false;
  }
  document.querySelector('meta[name="csrf"]').content = me.csrf ?? "";
  over = false;
  requestSent();
  return true;
}

async function tick() {
  const left = Math.max(lastRequest, stored()) + idle - Date.now();
  if (over) return;
  if (left <= 0) await check();
  else if (left < idle * 0.75 && isAttended() && lastInput > lastRequest) await ask();
  else if (left < WARNING) warn(left);
  else if (shown === "soon") tell("", []);
}

/** The time is over here; another tab or an open request can have prolonged it. This question prolongs nothing. */
async function check() {
  const response = await fetch(url("/v1/me"), { headers: { Accept: "application/json", "X-Unattended": "yes" } }).catch(() => null);
  if (response?.status === 401) endSession();
}

if (idle) {
  requestSent();
  for (const kind of ["keydown", "pointerdown", "input"]) addEventListener(kind, () => { lastInput = Date.now(); }, { capture: true, passive: true });
  addEventListener("input", () => { typed = true; }, true);
  addEventListener("submit", (event) => { if (over) { event.preventDefault(); event.stopImmediatePropagation(); shown = ""; endSession(); notice.scrollIntoView({ block: "nearest" }); } }, true);
  const comeBack = async () => { if (over && !document.hidden && await ask()) tell("", []); };
  addEventListener("focus", comeBack);
  document.addEventListener("visibilitychange", comeBack);
  setInterval(tick, Math.max(250, Math.min(15_000, idle / 20)));
}
