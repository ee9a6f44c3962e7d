// Requests to the service in JSON. An error is shown on the page, and the result is null.

import { path, url } from "./address.js";
import { endSession, hasTypedWork, isAttended, requestSent } from "./session.js";

const csrf = () => document.querySelector('meta[name="csrf"]')?.content ?? ""; // a new sign-in in another tab changes it
const ENDED = { code: "not-signed-in", what: "Your session has ended. What you typed is still on this page.", do: "Sign in in a new tab, then try again.", facts: {} };

export const get = (address) => talk("GET", address);
export const post = (address, body, more = {}) => talk("POST", address, body, more);
export const remove = (address) => talk("DELETE", address);

/** Send a request without showing an error: {"value"} or {"error"}. */
export async function quietly(method, address, body, more = {}) {
  const headers = { Accept: "application/json", "X-CSRF-Token": csrf(), ...(isAttended() ? {} : { "X-Unattended": "yes" }), ...more };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(url(address), { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    return { error: { code: "unreachable", what: "The service cannot be reached.", do: "Check that it is running, then try again.", facts: {} } };
  }
  if (response.status === 401 && hasTypedWork()) {
    endSession();
    return { error: ENDED };
  }
  if (response.status === 401) {
    const page = path() + location.search;
    try { sessionStorage.setItem(`hash of ${page}`, location.hash); } catch { /* private windows store nothing */ }
    location.assign(url(`/console/sign-in?next=${encodeURIComponent(page)}`));
    return new Promise(() => {}); // the page is about to close
  }
  if (isAttended()) requestSent();
  const content = await response.json().catch(() => ({}));
  return response.ok ? { value: content } : { error: problemIn(content, response.status) };
}

/** The error of a problem document (RFC 9457): { code, what, do, facts }. */
export function problemIn(content, status) {
  const { detail, code = "", do: next = "", facts = {} } = content ?? {};
  return { code, what: typeof detail === "string" ? detail : `The service responded with status ${status}.`, do: next, facts };
}

async function talk(method, address, body, more) {
  const { value, error } = await quietly(method, address, body, more);
  tell(error);
  return value ?? null;
}

/** Show an error (what, do) in the page's section for problems; null clears it. */
export function tell(error, place = document.getElementById("problem")) {
  place.hidden = !error;
  place.replaceChildren();
  if (!error) return;
  for (const [name, text] of [["what", error.what], ["do", error.do]]) {
    if (!text) continue;
    const line = document.createElement("p");
    line.className = name;
    line.textContent = text.charAt(0).toUpperCase() + text.slice(1);
    place.append(line);
  }
  place.scrollIntoView({ block: "nearest" });
}

/** The view that the page was rendered with: <script type="application/json" id="view">. */
export function view(id = "view") {
  return JSON.parse(document.getElementById(id).textContent);
}

/** An idempotency key: an action that is sent twice with it runs only once. */
export function key() {
  return crypto.randomUUID ? crypto.randomUUID() : [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
}
