// Save this query under a name. Saving is free; the query is opened again by its URL.

import { url } from "./address.js";
import { post } from "./api.js";
import { element } from "./elements.js";
import { fieldError } from "./field_errors.js";

const byId = (id) => document.getElementById(id);

/** `request()` is the question on the screen with its loss, or null if a field is not valid. */
export function saver(at, dataset, request) {
  async function save() {
    const name = byId("save-name").value.trim();
    fieldError(byId("save-name"), name ? null : "Enter a name.");
    const question = request();
    if (!name || !question) return;
    byId("save-go").disabled = true;
    const saved = await post(`${at}/questions`, { name, shared: byId("save-shared").checked, request: question });
    byId("save-go").disabled = false;
    if (!saved) return;
    const link = (path, text) => element("a", { href: url(`/console/data/${dataset}/${path}`) }, text);
    byId("save-state").replaceChildren("Saved: ", link(`ask?saved=${saved.id}`, saved.name), ". ", link("library", "All saved queries"));
    byId("save-name").value = "";
  }
  byId("save-go").addEventListener("click", save);
  byId("save-name").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    save();
  });
  for (const field of [byId("save-name"), byId("save-shared")]) field.addEventListener("input", (event) => event.stopPropagation()); // it is no part of the query
}
