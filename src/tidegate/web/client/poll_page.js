/** What all parts of a poll's page use: its sections, errors in the reader's language, amounts and dates. */

import { element, sentence, show } from "./elements.js";
import { Refused } from "./refused.js";

/** A section of the page. */
export const part = (name) => document.getElementById(name);

/** Do the work, and show an error if it fails. */
export async function guarded(page, work) {
  show(part("problem"));
  try {
    await work();
  } catch (problem) {
    const known = problem instanceof Refused;
    show(part("problem"), ...(known ? refusalOf(page, problem) : [sentence(page.words.fill("page.failed"), "what")]));
    part("problem").scrollIntoView({ block: "nearest" });
    if (!known) throw problem;
  }
}

/** An error of the client in the reader's language; the original text if there is no own one. */
function refusalOf({ words, holder }, { text, what, next }) {
  if (!text) return [sentence(words.fill("refused.other"), "what"), element("p", { lang: "en" }, `${what} ${next}`)];
  const said = (value) => (typeof value === "string" ? value : amountOf(words, value));
  const values = Object.fromEntries(Object.entries(text.values).map(([name, value]) => [name, said(value)]));
  return [sentence(words.fill(`refused.${text.key}`, { holder, ...values }), "what")];
}

/** A privacy loss as text. */
export const amountOf = (words, loss) => (loss === null ? words.fill("unlimited") : words.number(loss, 4));

/** The closing time in the reader's words and time zone. */
export function dateOf({ words, client }) {
  const format = { dateStyle: "long", timeStyle: "short" };
  return new Intl.DateTimeFormat([words.language, "en"], format).format(new Date(client.collection.poll.closes));
}
