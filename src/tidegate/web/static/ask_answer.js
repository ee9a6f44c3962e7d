// An answer: the number with its interval, its cost, its ledger entry, and the change of the meters; groups as bars and a table.

import { pageOf, url } from "./address.js";
import { get, tell, view } from "./api.js";
import { show } from "./chart.js";
import { amount, element, fill, number } from "./elements.js";

const byId = (id) => document.getElementById(id);
const FILES = [["CSV", "?format=csv"], ["JSON", ""], ["Parquet", "?format=parquet"], ["PNG", "?format=png"], ["SVG", "?format=svg"]];
const [LARGE, ROWS] = [200, 100]; // cells; above, a table has pages of this many rows
let permanent = ""; // the address of the stored answer on the screen

/** Show one answer, several answers of one charge, or results derived from earlier answers; `link` is its permanent address. */
export function answered(result, link = "") {
  permanent = link;
  const parts = result.answers ?? (result.derivations ? derivedParts(result.derivations) : [result]);
  const lines = result.tables ? [...result.tables.flatMap(resultOf), measuredOf(parts)] : parts.flatMap(lineOf);
  if (result.cells) lines.push(pagesOf(result));
  lines.push(element("p", { class: "quiet" }, result.derivations ? "Derived from earlier answers, free." : charged(result)), ...proofOf(result));
  byId("told").replaceChildren(...lines);
  showLinks(link);
  byId("result").hidden = false;
  byId("bars").hidden = !result.charts.answer;
  if (result.charts.answer) show("answer-chart", result.charts.answer);
  document.querySelector("#bars .order").hidden = !link || !result.charts.answer;
  byId("order").value = "policy";
  byId("result").scrollIntoView({ block: "nearest" });
  byId("result").focus({ preventScroll: true });
}

/** The part of a large answer that is shown, and buttons for the parts before and after it, which are free. */
function pagesOf(result) {
  const shown = (result.answers ?? [result]).reduce((sum, part) => sum + part.rows.length, 0);
  const size = result.size ?? shown; // of the first page: the last one can be shorter
  const turn = async (cursor) => {
    const { value, error } = await result.load(cursor);
    tell(error);
    if (value) answered({ ...result, size, rows: value.rows, answers: value.answers, first: value.first, next: value.next }, permanent);
  };
  const button = (text, cursor) => {
    const control = element("button", { type: "button", disabled: !cursor }, text);
    control.addEventListener("click", () => turn(cursor));
    return control;
  };
  const before = result.first > 0 && `${result.entry}.${Math.max(0, result.first - size)}`;
  const range = `Numbers ${(result.first + 1).toLocaleString("en")} to ${(result.first + shown).toLocaleString("en")} of ${result.cells.toLocaleString("en")}`;
  return element("p", { class: "pages" }, button("Previous", before), element("span", { class: "quiet" }, ` ${range} `), button("Next", result.next));
}

/** A link to the proof that the ledger contains the entry of a new answer. */
function proofOf(result) {
  if (!view().can_prove || !result.entry || Number(result.cost) === 0) return [];
  const note = " It shows later that the ledger still contains this entry: tidegate ledger check-proof FILE";
  return [element("p", { class: "quiet small" }, element("a", { href: url(`/v1/ledger/entries/${result.entry}/proof`), download: "" }, "Download the proof of this entry."), note)];
}

/** The permanent link of an answer, and its files; the files come before a table of many rows. */
function showLinks(link) {
  byId("files").hidden = !link;
  if (!link) return;
  const hash = link.slice(-12);
  const file = ([name, query]) => element("a", { href: url(link + query), download: query ? "" : `answer-${hash}.json` }, name);
  byId("files").replaceChildren(element("a", { href: pageOf(link) }, "Permanent link"), ...FILES.map(file));
}

/** Another order of the groups: the service draws the stored answer again, which is free. */
async function reorder() {
  const result = await get(`${permanent}?charts=true&order=${byId("order").value}`);
  if (result?.charts.answer) show("answer-chart", result.charts.answer);
}

byId("order")?.addEventListener("change", reorder);

/** The table of an SQL statement that computes with the answers; a noisy number itself has its 95% interval beside it. */
function resultOf({ columns, rows, intervals, notes }) {
  const end = (value) => (typeof value === "number" ? number(value, 6) : value);  // a mean of dates has dates as ends
  const shown = columns.flatMap(({ name }, index) => [{ name, at: (row) => row[index] }, ...(intervals[name] ? [{ name: `${name}: 95%`, at: (_, line) => `${end(intervals[name][0][line])} to ${end(intervals[name][1][line])}` }] : [])]);
  const table = element("table");
  fill(table, shown.map(({ name }) => name), rows.map((row, line) => shown.map(({ at }) => at(row, line) ?? "(missing)")));
  const numeric = shown.map(({ at }) => rows.length > 0 && typeof at(rows[0], 0) === "number");
  for (const [index, header] of [...table.querySelectorAll("th")].entries()) header.classList.toggle("number", numeric[index]);
  return [element("div", { class: "scroll" }, table), ...notes.map((note) => element("p", { class: "quiet small" }, note))];
}

/** The answers that a table was computed from. */
const measuredOf = (parts) => element("details", { hidden: !parts.length }, element("summary", {}, parts.length === 1 ? "The noisy answer behind it" : `The ${parts.length} noisy answers behind it`), ...parts.flatMap(lineOf));

function lineOf(part) {
  const paragraphs = [element("p", { class: "quiet" }, `${part.question.charAt(0).toUpperCase()}${part.question.slice(1)}`)];
  if (part.rows.length === 1 && part.cells_from === undefined) paragraphs.push(element("p", { class: "answer" }, ...single(part.rows[0], part.statistic)), ...rawOf(part.rows[0], part.statistic));
  else if (part.rows.length) paragraphs.push(tableOf(part));
  else paragraphs.push(element("p", {}, "This cannot be derived from earlier answers."));
  if (part.caution) paragraphs.push(element("p", { class: "quiet small" }, `${part.caution.charAt(0).toUpperCase()}${part.caution.slice(1)}.`));
  return paragraphs;
}

function single(row, statistic) {
  const value = element("strong", {}, number(row[statistic], 6));
  if (row.low === undefined) return [value];
  return [value, element("span", { class: "quiet small" }, `  95% interval ${number(row.low, 6)} to ${number(row.high, 6)}`)];
}

/** The unbiased number of a single answer, before it was clipped to its possible range. */
function rawOf(row, statistic) {
  if (row.noisy === undefined) return [];
  const table = element("table");
  fill(table, [statistic, "low", "high", "noisy"], [[row[statistic], row.low, row.high, row.noisy]]);
  return [element("details", {}, element("summary", {}, "The numbers"), element("div", { class: "scroll" }, table))];
}

function charged(result) {
  const free = Number(result.cost) === 0;
  const moves = Object.entries(result.identification).map(([name, target]) => `identification of ${name} at most ${short(target.before)} → ${short(target.after)} (limit ${short(target.ceiling)})`);
  const cost = free ? "Stored answer, free" : `Cost ${amount(result.cost, result.unit)}`;
  const certainty = `yes/no certainty at most ${short(result.yes_no.before)} → ${short(result.yes_no.after)} (limit ${short(result.yes_no.ceiling)})`;
  const entry = result.entry ? `entry ${result.entry.slice(0, 8)}` : "public, so nothing was charged";
  return [`${cost}, ${number(result.left)} remaining`, ...moves, certainty, entry].join(" · ");
}

const short = (value) => String(Number(Number(value).toPrecision(3)));

function tableOf(part) {
  const columns = Object.keys(part.rows[0]).filter((name) => name !== "noisy"); // it is behind the chart, with the numbers
  const table = element("table");
  const rows = part.rows.map((row) => columns.map((name) => row[name] ?? "(missing)"));
  const showFrom = (start) => {
    fill(table, columns, rows.length > LARGE ? rows.slice(start, start + ROWS) : rows);
    for (const [index, header] of [...table.querySelectorAll("th")].entries()) header.classList.toggle("number", typeof part.rows[0][columns[index]] === "number");
  };
  showFrom(0);
  const box = element("div", { class: "scroll" }, table);
  return rows.length > LARGE ? element("div", {}, box, pager(rows.length, showFrom)) : box;
}

/** Buttons to turn the pages of a long table. */
function pager(count, showFrom) {
  let start = 0;
  const turn = (text, step) => element("button", { type: "button", class: "second-choice", "data-step": step }, text);
  const [back, on, state] = [turn("Previous rows", -ROWS), turn("Next rows", ROWS), element("span", { role: "status" })];
  const update = () => {
    state.textContent = `Rows ${number(start + 1)} to ${number(Math.min(start + ROWS, count))} of ${number(count)}`;
    back.disabled = start === 0;
    on.disabled = start + ROWS >= count;
    showFrom(start);
  };
  for (const button of [back, on]) button.addEventListener("click", () => { start += Number(button.dataset.step); update(); });
  update();
  return element("p", { class: "links pages" }, back, state, on);
}

/** Derived results in the form of an answer. */
const derivedParts = (derivations) => derivations.map(({ question, derived }) => ({ question, statistic: "value", rows: derived?.rows ?? [], caution: derived ? derived.says : "" }));
