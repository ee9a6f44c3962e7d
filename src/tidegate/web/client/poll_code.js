/**
 * The invitation of a respondent: a code from the link or typed, which is exchanged for a permit when the form opens.
 *
 * The permit is { nonce, signature } of invitation.js; `page.permit` has it as soon as the service has signed.
 */

import { element, sentence, show } from "./elements.js";
import { PRIVATE } from "./form_fields.js";
import { hasToken, obtain } from "./invitation.js";
import { part } from "./poll_page.js";
import { Refused } from "./refused.js";

const TEXTS = { unknown: "code.wrong", used: "code.used", unreachable: "code.unreached", key: "code.key", closed: "page.closed" };

/**
 * Get the permit: from the memory, by the code of the link, or by one that is typed.
 *
 * Returns whether the code of the link is no longer needed: it was used or refused.
 */
export async function invitationOf(page, code) {
  const { poll } = page.client.collection;
  if (hasToken(poll.invitation_key, page.memory)) page.permit = await obtain("", "", poll.invitation_key, page.memory);
  if (page.permit) showPermit(page);
  if (page.permit) return true;
  const field = showField(page, code ?? "");
  return code ? exchange(page, code, field) : true;
}

function showPermit({ words }) {
  show(part("code"), sentence(words.fill("code.good"), "good"), help(words));
}

function help(words) {
  const summary = element("summary", {}, words.fill("code.title"));
  return element("details", {}, summary, sentence(words.fill("code.about"), "hint"));
}

function showField(page, code) {
  const { words } = page;
  const described = { "aria-describedby": "code-about code-problem" };
  const typed = { type: "text", value: code, ...PRIVATE, autocapitalize: "characters" };
  const input = element("input", { id: "code-input", ...typed, ...described });
  const button = element("button", { type: "submit", class: "quiet" }, words.fill("code.use"));
  const status = element("p", { class: "problem", id: "code-problem", role: "alert" });
  const label = element("label", { for: "code-input" }, words.fill("code.label"));
  const form = element("form", { method: "dialog", novalidate: true }, label, input, button);
  const field = { input, button, status };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    exchange(page, input.value, field);
  });
  const about = element("p", { class: "hint", id: "code-about" }, words.fill("code.about"));
  show(part("code"), element("h2", {}, words.fill("code.title")), form, status, about);
  return field;
}

/** Exchange a code for the permit, or say why it was refused. Returns whether the service has decided about the code. */
async function exchange(page, code, { input, button, status }) {
  const { words, holder, client, memory } = page;
  if (button.disabled) return false;
  button.disabled = true;
  status.textContent = words.fill("code.wait");
  try {
    const { tokensTo } = document.querySelector("main").dataset;
    page.permit = await obtain(tokensTo, code, client.collection.poll.invitation_key, memory);
    show(part("status"));
    showPermit(page);
    return true;
  } catch (problem) {
    if (!(problem instanceof Refused)) throw problem;
    status.textContent = problemText(words, holder, problem);
    input.setAttribute("aria-invalid", "true");
    input.focus();
    return ["unknown", "used"].includes(problem.reason);
  } finally {
    button.disabled = false;
  }
}

function problemText(words, holder, { reason, what, text }) {
  if (text) return words.fill(`refused.${text.key}`, { holder });
  return words.fill(TEXTS[reason] ?? "code.refused", { holder, reason: words.quoted(what) });
}
