// The columns of a draft: fields by kind, and the owner's check against the data.

import { quietly, tell } from "./api.js";
import { element, number } from "./elements.js";

const byId = (id) => document.getElementById(id);

/** Show the fields of the chosen kind of each column. */
export function watchColumns(form) {
  const choices = byId("kinds") && JSON.parse(byId("kinds").textContent);
  if (!choices) return;
  form.addEventListener("change", (event) => {
    if (event.target.matches?.("[data-kind]")) arrange(event.target.closest(".column"), event.target.value, choices);
  });
}

function arrange(column, kind, { parts, grids }) {
  const shown = [...(parts[kind] ?? []), ...(["key", "leave-out"].includes(kind) ? [] : ["missing"])];
  for (const part of column.querySelectorAll("[data-part]")) part.hidden = !shown.includes(part.dataset.part);
  const grid = column.querySelector('[data-part="grid"] select');
  if (grids[kind]) grid.replaceChildren(...grids[kind].map((name) => element("option", {}, name)));
  column.querySelector(".proposed")?.remove();
}

/** Store what was typed, compare it with the data, and show the exact numbers to the owner. */
export async function checkData(form, fields) {
  const button = byId("check"), report = byId("report");
  button.disabled = true;
  button.textContent = "Checking …";
  const stored = await quietly("POST", form.dataset.address, { fields });
  const { value, error } = stored.error ? stored : await quietly("POST", form.dataset.address.replace("steps/columns", "check"), {});
  button.disabled = false;
  button.textContent = "Check against the data";
  tell(error ?? null);
  if (!value) return;
  report.replaceChildren(reportOf(value));
  report.hidden = false;
  report.focus();
  report.scrollIntoView({ block: "start" });
}

function reportOf(report) {
  const persons = report.persons ? `, ${number(report.persons.persons)} persons; ${number(report.persons.rows_lost)} rows above the limit of ${number(report.persons.at_most)} rows per person are not counted, ${number(report.persons.without_key)} rows have no key` : "";
  const broken = report.malformed && (report.malformed.lines || report.malformed.characters) ? ` ${number(report.malformed.lines)} lines are not well formed, ${number(report.malformed.characters)} lines have characters that are not UTF-8.` : "";
  const skipped = report.skipped.length ? [element("p", { class: "quiet" }, `Not checked, because they are not complete: ${report.skipped.join(", ")}.`)] : [];
  return element("div", { class: "private" },
    element("h2", {}, "Check against the data"),
    element("p", {}, element("strong", {}, "For the owner, not for publication."), " These numbers are exact and come from private rows. They are not stored, and closing this page discards them."),
    element("p", {}, `${number(report.rows)} rows${persons}.${broken}`), verdictOf(report), ...skipped,
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Columns compared with the data" }, tableOf(report.columns)));
}

function verdictOf(report) {
  const quiet = (text) => element("p", { class: "quiet" }, text), good = (text) => element("p", { class: "good" }, text);
  if (report.problems.length) return element("div", {}, element("ul", {}, ...report.problems.map((text) => element("li", {}, text))), quiet("Values that cannot be read often come from decimal commas, units, words such as NA, or spaces in the file: upload it again and choose how it is written."));
  if (report.columns.some((column) => column.unlisted.length)) return element("div", {}, good("Every value can be read and is within its bounds, but some labels are not listed."), quiet("Labels that are not listed are counted as “(other)”. If they differ from listed ones in upper and lower case or spaces only, upload the file again and choose how it is written."));
  return good(report.skipped.length ? "The checked columns fit the data." : "The data fits the columns.");
}

function tableOf(columns) {
  const heads = [["column"], ["missing", "number"], ["outside", "number"], ["unlisted labels"]];
  const head = element("tr", {}, ...heads.map(([name, kind]) => element("th", { scope: "col", class: kind ?? "" }, name)));
  const rows = columns.map((column) => element("tr", {},
    element("th", { scope: "row" }, column.column),
    element("td", { class: "number" }, number(column.missing)),
    element("td", { class: "number" }, outside(column.outside)),
    element("td", { class: "wrapped" }, column.unlisted.map((label) => `“${label.value}” (${number(label.rows)}${label.nearest ? `; did you mean “${label.nearest}”?` : ""})`).join(", "))));
  return element("table", { class: "unbroken" }, element("thead", {}, head), element("tbody", {}, ...rows));
}

const outside = (counts) => Object.entries(counts).filter(([, count]) => count).map(([side, count]) => `${number(count)} ${side}`).join(", ") || "0";
