// Create tokens and one-time links, show each once, revoke tokens after a confirmation, end sessions.

import { url } from "./address.js";
import { showCode } from "./code.js";
import { element, number } from "./elements.js";
import { post, remove } from "./api.js";
import { fieldError } from "./field_errors.js";

const byId = (id) => document.getElementById(id);

/** Whether the budget can be shared: an analyst of a data set that has one, or of all data sets. */
function hasShare() {
  const { value, dataset } = byId("token-dataset").selectedOptions[0];
  return byId("role").value === "analyst" && (!value || Number(dataset.limit) > 0);
}

/** Show the fields of the chosen role. A respondent needs a data set with a release desk. */
function arrange() {
  const role = byId("role").value;
  byId("record-field").hidden = role !== "respondent";
  const select = byId("token-dataset");
  for (const option of select.options) option.disabled = role === "respondent" && !option.dataset.desk;
  if (select.selectedOptions[0]?.disabled) select.value = [...select.options].find((option) => !option.disabled).value;
  byId("share-field").hidden = !hasShare();
  const unit = unitOf(select.value);
  byId("share-unit").textContent = unit || "the unit of each data set";
  byId("share-part").hidden = !unit;
}

/** The unit of a data set's amounts; empty for all data sets. */
const unitOf = (name) => [...byId("token-dataset").options].find((option) => option.value === (name ?? ""))?.dataset.unit ?? "";

/** The budget share in the unit of the account: an amount, or a percentage of the limit rounded down; null if it is neither. */
function shareOf(text) {
  if (/^\d{1,6}(\.\d{1,30})?$/.test(text)) return text;
  const limit = Number(byId("token-dataset").selectedOptions[0]?.dataset.limit ?? 0);
  const amount = (limit * Number(/^(\d{1,3}(?:\.\d{1,6})?) ?%$/.exec(text)?.[1] ?? 0)) / 100;
  if (!(amount > 0 && amount <= limit)) return null;
  const digits = Math.max(0, 5 - Math.floor(Math.log10(amount)));
  return (Math.floor(amount * 10 ** digits) / 10 ** digits).toFixed(digits);
}

/** Show the errors of the fields; return whether there are none. */
function check() {
  const share = byId("share").value.trim(), wanted = hasShare() && share;
  const example = byId("token-dataset").value ? "Enter an amount such as 0.5, or a part of the budget of at most 100%, such as 25%." : "Enter an amount such as 0.5. To give a part such as 25%, choose one data set.";
  fieldError(byId("name"), byId("name").value.trim() ? null : "Enter a name.");
  fieldError(byId("share"), wanted && !shareOf(share) ? example : null);
  const wrong = byId("make").querySelector("[aria-invalid]");
  wrong?.focus();
  return !wrong;
}

function requestBody() {
  const role = byId("role").value;
  const body = { role, name: byId("name").value.trim(), dataset: byId("token-dataset").value, days: Number(byId("days").value) || 90 };
  if (hasShare() && byId("share").value.trim()) body.share = shareOf(byId("share").value.trim());
  if (role === "respondent") body.record = byId("record").value;
  return body;
}

for (const id of ["role", "token-dataset"]) byId(id).addEventListener("input", arrange);
byId("make").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (!check()) return;
  const token = await post("/v1/tokens", requestBody());
  if (token) showToken(token);
});

byId("make-link").addEventListener("click", async () => {
  if (!check()) return;
  const link = await post("/v1/links", { user: requestBody() });
  if (!link) return;
  showLink(link);
  byId("make").reset();
  arrange();
  addRow(link);
});

/** Show a new one-time link; the page stores it nowhere. */
function showLink(link) {
  byId("made").replaceChildren(
    element("h2", {}, `Sign-in link for ${link.name}`),
    element("p", {}, `This link is shown only once. It works once, within 15 minutes: give it to ${link.name} now.`),
    snippet("Sign-in link", link.link),
  );
  byId("made").hidden = false;
  byId("made").scrollIntoView({ block: "nearest" });
}

function snippet(kind, text) {
  const bar = element("div", { class: "bar" }, element("span", {}, kind), element("button", { type: "button", class: "plain copy" }, "Copy"));
  return element("div", { class: "snippet" }, bar, element("pre", {}, element("code", {}, text)));
}

/** Show a new token once; the page stores it nowhere. */
function showToken(token) {
  const link = `${location.origin}${url("/console/sign-in")}#${token.token}`;
  const until = token.expires.slice(0, 10);
  const role = token.role === "respondent" ? "a respondent" : `an ${token.role}`;
  byId("made").replaceChildren(
    element("h2", {}, `Token for ${token.name}`),
    element("p", {}, `This token is shown only once. Give ${token.name} the link or the token. It gives the access of ${role} until ${until}.`),
    snippet("Sign-in link", link),
    snippet("Token", token.token),
  );
  byId("made").hidden = false;
  byId("make").reset();
  arrange();
  showCode(token.code);
  addRow(token);
}

function addRow(token) {
  const body = document.querySelector("#tokens tbody");
  if (!body) return;
  const cell = (text, more = {}) => element("td", more, text ?? "");
  const name = element("td", {}, token.name, element("br"), element("code", { class: "quiet small" }, token.id));
  const buttons = [element("button", { type: "button", class: "second-choice new-link" }, "Sign-in link"), " ", element("button", { type: "button", class: "second-choice revoke" }, "Revoke")];
  const row = element("tr", { "data-token": token.id, "data-name": token.name }, name, cell(token.role), cell(token.dataset ?? "all", { "data-label": "data set" }),
    cell(token.share && `${number(token.share)} ${unitOf(token.dataset)}`, { class: "number", "data-label": token.share && "budget share" }), cell(token.method === "link" ? "one-time links" : "token", { "data-label": "sign-in" }), cell(`now, by ${token.maker}`, { "data-label": "created" }), cell("never", { "data-label": "last use" }), cell(`until ${token.expires.slice(0, 10)}`, { "data-part": "state" }), element("td", {}, ...buttons));
  body.prepend(row);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button.revoke");
  if (button) confirmRevocation(button.closest("tr"));
  const ofLink = event.target.closest?.("button.new-link");
  if (ofLink) newLink(ofLink.closest("tr"));
  const ofSession = event.target.closest?.("button.end");
  if (ofSession) endSession(ofSession.closest("tr"));
});

async function newLink(row) {
  const link = await post("/v1/links", { token: row.dataset.token });
  if (link) showLink(link);
}

async function endSession(row) {
  const ended = await remove(`/v1/sessions/${row.dataset.session}`);
  if (ended) row.querySelector('[data-part="state"]').textContent = "ended now";
}

/** Ask for confirmation: a revoked token cannot be restored. */
function confirmRevocation(row) {
  const own = row.dataset.me ? " You are signed in with this token." : "";
  byId("sure-what").textContent = `Revoke the token of ${row.dataset.name}? It stops working immediately and cannot be restored.${own}`;
  byId("sure-yes").onclick = () => revoke(row);
  byId("sure-no").onclick = () => byId("sure").close();
  byId("sure").showModal();
}

async function revoke(row) {
  byId("sure").close();
  const revoked = await remove(`/v1/tokens/${row.dataset.token}`);
  if (!revoked) return;
  row.querySelector('[data-part="state"]').textContent = "revoked now";
  for (const button of row.querySelectorAll("button")) button.remove();
}

arrange();
