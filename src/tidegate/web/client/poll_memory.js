/** What the browser stores about a respondent, and how to delete it. */

import { element, sentence, show } from "./elements.js";
import { amountOf, guarded, part } from "./poll_page.js";

/** What this browser stores, and how to delete it; hidden if there is nothing. `done` is the text of what was just deleted. */
export async function showMemory(page, done = "") {
  const { words, client, holder } = page;
  const { spent, lifetime } = await client.account();
  const isUsed = spent === null || spent.n > 0n;
  const used = words.fill("sent.used", { holder, spent: amountOf(words, spent), lifetime: amountOf(words, lifetime) });
  const hints = ["sent.stored", "forget.about"].map((key) => sentence(words.fill(key), "hint"));
  const stored = client.remembers() ? [...hints, forgetButton(page)] : [];
  const all = isUsed || stored.length ? [forgetEverything(page)] : [];
  const status = done ? [element("p", { class: "good", role: "status", tabindex: "-1" }, words.fill(done))] : [];
  const content = [...status, ...(isUsed ? [sentence(used)] : []), ...stored, ...all];
  show(part("memory"), ...(content.length ? [element("h2", {}, words.fill("memory.title")), ...content] : []));
  part("memory").querySelector(".good")?.focus();
}

function forgetButton(page) {
  const button = element("button", { type: "button" }, page.words.fill("forget.button"));
  button.addEventListener("click", () => deleted(page, () => page.client.forget(), "forget.done"));
  return element("p", {}, button);
}

function forgetEverything(page) {
  const { words } = page;
  const button = element("button", { type: "button", class: "quiet" }, words.fill("forget.all.button"));
  button.addEventListener("click", () => deleted(page, () => everythingDeleted(page), "forget.all.done"));
  const summary = element("summary", {}, words.fill("forget.all.title"));
  return element("details", {}, summary, element("p", { class: "warning" }, words.fill("forget.all.about")), element("p", {}, button));
}

/** Delete everything. The form then no longer fits the memory: the questions would be drawn again. */
async function everythingDeleted(page) {
  await page.client.forgetEverything();
  for (const name of ["questions", "code", "status"]) show(part(name));
  if (part("sent").hidden) show(part("connection"), sentence(page.words.fill("page.reload")));
}

function deleted(page, work, done) {
  return guarded(page, async () => {
    await work();
    if (page.report) page.report.open = false;
    await showMemory(page, done);
  });
}
