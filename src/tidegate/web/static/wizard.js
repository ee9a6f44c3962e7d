// The wizard: uploads with progress, fields that depend on a choice, and a preview of the policy while somebody types.

import { quietly } from "./api.js";
import { fieldError } from "./field_errors.js";
import { showMeaning } from "./wizard_promise.js";
import { checkData, watchColumns } from "./wizard_columns.js";
import { prepareUpload } from "./wizard_upload.js";

const PAUSE = 350; // milliseconds without typing before the preview
const form = document.getElementById("step");

/** Show only the parts of the form that belong to a choice: data-when="unit=person". */
function arrange() {
  for (const part of document.querySelectorAll("[data-when]")) {
    const [name, value] = part.dataset.when.split("=");
    const chosen = form.elements[name];
    part.hidden = (chosen?.value ?? "") !== value;
  }
}

/** The fields of the form by name, each a list of values. */
function fieldsOf(node) {
  const fields = {};
  for (const [name, value] of new FormData(node)) if (name !== "csrf") (fields[name] ??= []).push(value);
  return fields;
}

let latest = 0;

/** Ask for the policy with what was typed, without storing it; answers that arrive late are dropped. */
async function preview() {
  const number = ++latest;
  const { value } = await quietly("POST", form.dataset.address, { fields: fieldsOf(form), store: false });
  if (number !== latest || !value) return;
  document.getElementById("toml").textContent = value.toml;
  const problems = value.steps.find((step) => form.dataset.address.endsWith(step.step))?.problems ?? {};
  for (const shown of form.querySelectorAll("[aria-invalid]")) if (!problems[shown.id]) clear(shown);
  shorten(problems);
  showMeaning(value.promise, problems);
}

/** Take the problems that are solved off the list. */
function shorten(problems) {
  const list = document.querySelector("#refusal ul");
  if (!list) return;
  for (const link of list.querySelectorAll("a")) if (!problems[decodeURIComponent(link.hash.slice(1))]) link.parentNode.remove();
  const count = list.children.length;
  if (!count) return document.getElementById("refusal").remove();
  document.querySelector("#refusal .what").textContent = `${count} ${count === 1 ? "field needs" : "fields need"} your attention.`;
}

/** Remove the error of a field, whether the service or this page wrote it. */
function clear(input) {
  fieldError(input, null);
  input.removeAttribute("aria-describedby");
}

if (form) {
  arrange();
  let timer = 0;
  form.addEventListener("input", () => {
    arrange();
    clearTimeout(timer);
    if (form.dataset.address) timer = setTimeout(preview, PAUSE);
  });
  document.getElementById("apply")?.remove(); // without scripts it shows the fields of a kind, or the meaning of a promise
  watchColumns(form);
  document.getElementById("check")?.addEventListener("click", (event) => {
    event.preventDefault();
    checkData(form, fieldsOf(form));
  });
}
prepareUpload();
(document.getElementById("refusal") ?? document.getElementById("published"))?.focus();
document.getElementById("queries")?.addEventListener("change", (event) => event.target.form.requestSubmit());
