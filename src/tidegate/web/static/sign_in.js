// Sign in with a token or a one-time link: typed, or in the fragment of a link, which browsers never send.

import { url } from "./address.js";
import { problemIn, tell } from "./api.js";

const form = document.getElementById("sign-in");

async function signIn(token) {
  const body = JSON.stringify({ token });
  let response;
  try {
    response = await fetch(url("/v1/sign-in"), { method: "POST", headers: { "Content-Type": "application/json" }, body });
  } catch {
    return tell({ what: "The service cannot be reached.", do: "Check that it is running, then try again." });
  }
  const content = await response.json().catch(() => ({}));
  if (!response.ok) return tell(problemIn(content, response.status));
  return location.replace(url(content.role === "respondent" ? "/console/record" : next()));
}

/** The page to open after sign-in: a page of this console, and nothing else; with the query stored in its URL. */
function next() {
  const requested = new URLSearchParams(location.search).get("next") ?? "";
  const page = /^\/console(\/[\w.\/-]*(\?[\w.=&%+-]*)?)?$/.test(requested) ? requested : "/console";
  try { return page + (sessionStorage.getItem(`hash of ${page}`) ?? ""); } catch { return page; }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  signIn(form.token.value.trim());
});

function fromLink() {
  const fragment = location.hash.slice(1);
  if (!fragment.startsWith("tg_") && !fragment.startsWith("tgl_")) return;
  history.replaceState(null, "", location.pathname + location.search); // keep the token out of the history and bookmarks
  signIn(fragment);
}

fromLink();
addEventListener("hashchange", fromLink);
