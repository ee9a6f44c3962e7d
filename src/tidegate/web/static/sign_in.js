// Sign in with a token: typed, or in the fragment of a link, which a browser never sends.

import { tell } from "./talk.js";

const form = document.getElementById("sign-in");

async function signIn(token) {
  const body = JSON.stringify({ token });
  let response;
  try {
    response = await fetch("/sign-in", { method: "POST", headers: { "Content-Type": "application/json" }, body });
  } catch {
    return tell({ what: "the service cannot be reached.", do: "See whether it runs, then try again." });
  }
  const content = await response.json();
  if (!response.ok) return tell(content.error);
  return location.replace(content.role === "respondent" ? "/console/record" : next());
}

/** Where the visitor wanted to go: a page of this console, and nothing else; with the draft that its address held. */
function next() {
  const wanted = new URLSearchParams(location.search).get("next") ?? "";
  const page = /^\/console(\/[\w.\/-]*)?$/.test(wanted) ? wanted : "/console";
  try { return page + (sessionStorage.getItem(`hash of ${page}`) ?? ""); } catch { return page; }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  signIn(form.token.value.trim());
});

function fromLink() {
  const given = location.hash.slice(1);
  if (!given.startsWith("tg_")) return;
  history.replaceState(null, "", location.pathname + location.search); // not in the history, not in a bookmark
  signIn(given);
}

fromLink();
addEventListener("hashchange", fromLink);
