// Make tokens, show each once with its sign-in link, revoke them after a second thought.

import { showCode } from "./code.js";
import { element } from "./elements.js";
import { post, remove } from "./talk.js";

const place = (id) => document.getElementById(id);

/** Show the fields that a role has. A respondent's record is of one data set that has a desk. */
function arrange() {
  const role = place("role").value;
  place("share-field").hidden = role !== "analyst";
  place("record-field").hidden = role !== "respondent";
  const select = place("token-dataset");
  for (const option of select.options) option.disabled = role === "respondent" && !option.dataset.desk;
  if (select.selectedOptions[0]?.disabled) select.value = [...select.options].find((option) => !option.disabled).value;
}

function wanted() {
  const role = place("role").value;
  const asked = { role, name: place("name").value.trim(), dataset: place("token-dataset").value, days: Number(place("days").value) || 90 };
  if (role === "analyst" && place("share").value.trim()) asked.share = place("share").value.trim();
  if (role === "respondent") asked.record = place("record").value;
  return asked;
}

place("role").addEventListener("input", arrange);
place("make").addEventListener("submit", async (event) => {
  event.preventDefault();
  const made = await post("/tokens", wanted());
  if (made) shown(made);
});

function snippet(kind, text) {
  const bar = element("div", { class: "bar" }, element("span", {}, kind), element("button", { type: "button", class: "plain copy" }, "Copy"));
  return element("div", { class: "snippet" }, bar, element("pre", {}, element("code", {}, text)));
}

/** This once: the page keeps it nowhere. */
function shown(made) {
  const link = `${location.origin}/console/sign-in#${made.token}`;
  const until = made.expires.slice(0, 10);
  place("made").replaceChildren(
    element("h2", {}, `A token for ${made.name}`),
    element("p", {}, `It is shown this once. Give ${made.name} the link, or the token; it opens what ${made.role === "owner" ? "an owner" : `${made.role === "analyst" ? "an analyst" : "a respondent"}`} may see, until ${until}.`),
    snippet("Sign-in link", link),
    snippet("Token", made.token),
  );
  place("made").hidden = false;
  place("make").reset();
  arrange();
  showCode(made.code);
  addRow(made);
}

function addRow(made) {
  const body = document.querySelector("#tokens tbody");
  if (!body) return;
  const cell = (text, more = {}) => element("td", more, text ?? "");
  const name = element("td", {}, made.name, element("br"), element("code", { class: "quiet small" }, made.id));
  const button = element("button", { type: "button", class: "second-choice revoke" }, "Revoke");
  const row = element("tr", { "data-token": made.id, "data-name": made.name }, name, cell(made.role), cell(made.dataset ?? "all", { "data-label": "data set" }),
    cell(made.share, { class: "number", "data-label": made.share && "share" }), cell("now", { "data-label": "made" }), cell(`until ${made.expires.slice(0, 10)}`, { "data-part": "state" }), element("td", {}, button));
  body.prepend(row);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button.revoke");
  if (button) sure(button.closest("tr"));
});

/** A second thought: what is revoked cannot be given back. */
function sure(row) {
  const own = row.dataset.me ? " It is the one that you are signed in with." : "";
  place("sure-what").textContent = `Revoke the token of ${row.dataset.name}? It opens nothing from then on, and cannot be given back.${own}`;
  place("sure-yes").onclick = () => revoke(row);
  place("sure-no").onclick = () => place("sure").close();
  place("sure").showModal();
}

async function revoke(row) {
  place("sure").close();
  const told = await remove(`/tokens/${row.dataset.token}`);
  if (!told) return;
  row.querySelector('[data-part="state"]').textContent = "revoked now";
  row.querySelector("button.revoke").remove();
}

arrange();
