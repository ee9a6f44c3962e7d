// Earlier queries, the latest first. Each comes with the request that returns its stored answer, which is free.

import { pageOf } from "./address.js";
import { amount, element } from "./elements.js";
import { get } from "./api.js";

const LIMIT = 20;
const byId = (id) => document.getElementById(id);

/** Fill the list; `ask` is called with the request of a query whose answer is shown again. */
export function showHistory(at, first, ask) {
  let next = null;
  const add = (page) => {
    byId("history").append(...page.questions.map((entry) => line(entry, ask)));
    byId("nothing-yet").hidden = byId("history").children.length > 0;
    next = page.next;
    byId("older").hidden = next === null;
  };
  const load = (cursor) => get(`${at}/history?newest=true&limit=${LIMIT}${cursor ? `&cursor=${cursor}` : ""}`);
  byId("older").addEventListener("click", async () => {
    const page = await load(next);
    if (page) add(page);
  });
  add(first);
  return {
    again: async () => {
      const page = await load("");
      if (!page) return;
      byId("history").replaceChildren();
      add(page);
    },
  };
}

function line(entry, ask) {
  const when = new Date(entry.at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
  const about = element("span", { class: "quiet" }, `${when} · entry ${entry.number} · cost ${amount(entry.cost, entry.unit)}`);
  const said = element("span", { class: "said" }, about, entry.says);
  const button = element("button", { type: "button", class: "second-choice" }, "Show again (free)");
  button.addEventListener("click", () => ask(entry.again));
  if (entry.again) said.append(" ", element("a", { href: pageOf(entry.link) }, "permanent link"));
  return element("li", {}, said, entry.again ? button : element("span", { class: "quiet small" }, "no stored answer under the current policy"));
}
