// A query from the form or as SQL: {questions: [...]} or {sql}.

import { element } from "./elements.js";
import { fieldError } from "./field_errors.js";

const NUMBERS = ["mean", "sum", "variance", "std", "quantile", "min", "max", "regression"];
const [ORDERED, LISTED] = [["=", "!=", "<", "<=", ">", ">="], ["=", "!="]];
const OPERATORS = { number: ORDERED, date: ORDERED, timestamp: ORDERED, time: ORDERED, category: LISTED, text: LISTED };
const INPUTS = { date: "date", timestamp: "datetime-local", time: "time", text: "text" }; // their values have no time zone
const ENTER = { number: "Enter a number.", date: "Enter a date.", timestamp: "Enter a date and a time.", time: "Enter a time.", text: "Enter a text." };
const isOrdered = ({ kind }) => OPERATORS[kind] === ORDERED;

const byId = (id) => document.getElementById(id);
const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`).value;
const ticked = (id) => [...byId(id).querySelectorAll("input:checked")].map((box) => box.value);

/** The form of the columns; `changed` is called whenever the query changes. */
export function builder(columns, changed) {
  const find = (name) => columns.find((one) => one.name === name);
  boxes("by", columns.map((one) => one.name));
  byId("add-condition").addEventListener("click", () => addCondition(columns, find, changed));
  byId("ask").addEventListener("input", (event) => {
    if (event.target.closest("#wishes")) return;
    arrange(columns);
    changed();
  });
  arrange(columns);
  return {
    asked: () => (chosen("form") === "sql" ? { sql: byId("sql").value, ...(byId("together").checked ? { plan: "auto" } : {}) } : { questions: [one(find)] }),
    check: () => check(),
    state,
    restore: (saved) => restore(saved, columns, find, changed),
    start: () => first(columns),
    stateOf: (request, sql) => stateOf(request, sql, find),
  };
}

/** Whether every visible field is valid; invalid fields show an error. */
function check() {
  const clicks = chosen("form") === "clicks";
  const errors = [[byId("sql"), clicks || byId("sql").value.trim() ? null : "Enter a SELECT statement."]];
  const share = Number(byId("share").value);
  errors.push([byId("share"), !clicks || byId("what").value !== "quantile" || (share > 0 && share < 1) ? null : "Enter a number between 0 and 1."]);
  for (const field of document.querySelectorAll("#where input.value")) {
    errors.push([field, !clicks || (field.value.trim() !== "" && !field.validity.badInput) ? null : ENTER[field.dataset.kind]]);
  }
  for (const [field, text] of errors) fieldError(field, text);
  return errors.every(([, text]) => !text);
}

/** The current values of the form. */
function state() {
  const row = (line) => [".column", ".operator", ".value"].map((part) => line.querySelector(part).value);
  return {
    form: chosen("form"), what: byId("what").value, column: byId("column").value, share: byId("share").value, by: ticked("by"), on: ticked("on"),
    joined: chosen("joined"), where: [...byId("where").children].map(row), sql: byId("sql").value,
    together: byId("together").checked,
  };
}

/** The values of the form for a request of the API: by clicks where the form can show it, otherwise as SQL; null if it cannot be shown. */
function stateOf(request, sql, find) {
  const rest = { ...state(), together: request.plan === "auto" };
  const [only, ...others] = request.questions ?? [];
  const parts = only && !others.length && !request.sql && !only.table && !only.method ? flat(only.where) : null;
  const rows = parts?.list.map((part) => conditionState(part, find));
  if (rows && !rows.includes(null) && byId("what").querySelector(`[value="${CSS.escape(only.ask)}"]`)) {
    return { ...rest, form: "clicks", what: only.ask, column: only.column ?? "", share: decimal(only.share) || "0.5", by: only.by ?? [], on: only.on ?? [], joined: parts.word, where: rows };
  }
  return sql ? { ...rest, form: "sql", sql } : null;
}

/** A quantile that is written as a fraction, as a decimal. */
const decimal = (text) => { const [top, bottom = 1] = String(text ?? "").split("/"); return top ? String(Number(top) / Number(bottom)) : ""; };

/** The comparisons of a condition without nesting, and the word that joins them; null if it is nested. */
function flat(where) {
  if (!where) return { word: "and", list: [] };
  const word = where.or ? "or" : "and";
  const list = where.compare ? [where] : where[word];
  return list?.every((part) => part.compare) ? { word, list } : null;
}

function conditionState({ compare: [name, operator, value] }, find) {
  const column = find(name);
  if (!column || !OPERATORS[column.kind].includes(operator)) return null;
  if (column.kind !== "category") return [name, operator, column.kind === "number" ? decimal(value) : String(value)];
  const index = column.values.findIndex((label) => String(label) === String(value));
  return index < 0 ? null : [name, operator, String(index)];
}

/** Propose the mean of a number, or of a date if there is no number: the number of rows can be public. */
function first(columns) {
  if (columns.some(isOrdered)) byId("what").value = "mean";
  arrange(columns);
  const number = columns.find(({ kind }) => kind === "number");
  if (number) byId("column").value = number.name;
  arrange(columns);
}

/** Fill in the form again; columns that no longer exist are skipped. */
function restore(saved, columns, find, changed) {
  const choose = (name, value) => { const box = document.querySelector(`input[name="${name}"][value="${CSS.escape(value)}"]`); if (box) box.checked = true; };
  const tick = (id, names) => { for (const box of byId(id).querySelectorAll("input")) box.checked = names.includes(box.value); };
  choose("form", saved.form);
  choose("joined", saved.joined);
  byId("what").value = saved.what;
  byId("share").value = saved.share;
  byId("sql").value = saved.sql;
  byId("together").checked = Boolean(saved.together);
  tick("by", saved.by);
  byId("where").replaceChildren();
  for (const [column, operator, value] of saved.where.filter(([name]) => find(name))) {
    const row = conditionRow(columns, find, changed);
    row.querySelector(".column").value = column;
    row.fit();
    row.querySelector(".operator").value = operator;
    row.querySelector(".value").value = value;
  }
  arrange(columns);
  if (find(saved.column)) byId("column").value = saved.column;
  arrange(columns);
  tick("on", saved.on);
}

function boxes(id, names, saved = []) {
  const box = (name) => element("label", { class: "choice" }, element("input", { type: "checkbox", value: name, checked: saved.includes(name) }), ` ${name}`);
  byId(id).replaceChildren(...names.map(box));
}

/** Show the fields of the chosen statistic. */
function arrange(columns) {
  const what = byId("what").value;
  byId("clicks").hidden = chosen("form") === "sql";
  byId("sql-field").hidden = chosen("form") !== "sql";
  byId("column-field").hidden = what === "count";
  byId("share-field").hidden = what !== "quantile";
  byId("on-field").hidden = what !== "regression";
  byId("by-field").hidden = what === "regression";
  byId("joined-field").hidden = byId("where").children.length < 2;
  offer(columns.filter((one) => isOrdered(one) || !NUMBERS.includes(what)).map((one) => one.name));
  offerTerms(columns.filter((one) => isOrdered(one) && one.name !== byId("column").value).map((one) => one.name));
}

/** The predictors of a regression; the first one is selected by default. */
function offerTerms(names) {
  if ([...byId("on").querySelectorAll("input")].map((box) => box.value).join("\n") === names.join("\n")) return;
  const saved = ticked("on").filter((name) => names.includes(name));
  boxes("on", names, saved.length ? saved : names.slice(0, 1));
}

function offer(names) {
  const select = byId("column");
  const before = select.value;
  if ([...select.options].map((one) => one.value).join("\n") === names.join("\n")) return;
  select.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  if (names.includes(before)) select.value = before;
}

function one(find) {
  const what = byId("what").value;
  const asked = { ask: what };
  if (what !== "count") asked.column = byId("column").value;
  if (what === "quantile") asked.share = byId("share").value;
  if (what === "regression") asked.on = ticked("on");
  else asked.by = ticked("by");
  const parts = [...byId("where").children].map((row) => condition(row, find));
  if (parts.length) asked.where = parts.length === 1 ? parts[0] : { [chosen("joined")]: parts };
  return asked;
}

function condition(row, find) {
  const column = find(row.querySelector(".column").value);
  const operator = row.querySelector(".operator").value;
  const field = row.querySelector(".value");
  if (column.kind === "category") return { compare: [column.name, operator, column.values[Number(field.value)]] };
  return { compare: [column.name, operator, column.kind === "number" ? Number(field.value) : field.value] };
}

function addCondition(columns, find, changed) {
  const row = conditionRow(columns, find, changed);
  arrange(columns);
  row.querySelector(".column").focus();
  changed();
}

function conditionRow(columns, find, changed) {
  const names = element("select", { class: "column", "aria-label": "Column of the condition" }, ...columns.map((one) => element("option", { value: one.name }, one.name)));
  const operator = element("select", { class: "operator", "aria-label": "Comparison" });
  const holder = element("span");
  const removal = element("button", { type: "button", class: "plain" }, "Remove");
  const row = element("div", { class: "condition" }, names, operator, holder, removal);
  row.fit = () => fitted(find(names.value), operator, holder);
  names.addEventListener("input", row.fit); // before the form's own listener
  removal.addEventListener("click", () => {
    row.remove();
    arrange(columns);
    changed();
    byId("add-condition").focus();
  });
  row.fit();
  byId("where").append(row);
  return row;
}

/** The comparisons and values of a column. */
function fitted(column, operator, holder) {
  operator.replaceChildren(...OPERATORS[column.kind].map((sign) => element("option", { value: sign }, sign)));
  const about = { class: "value", "aria-label": "Value to compare with" };
  if (column.kind === "category") {
    const option = (value, number) => element("option", { value: number }, String(value));
    return holder.replaceChildren(element("select", about, ...column.values.map(option)));
  }
  const input = { ...about, "data-kind": column.kind, type: INPUTS[column.kind] ?? "number", title: column.says ?? "" };
  if (column.kind === "text") return holder.replaceChildren(element("input", { ...input, autocomplete: "off", spellcheck: "false" }));
  operator.value = ">=";
  const { low, high, step } = column;
  const middle = column.middle ?? low + Math.round((high - low) / step / 2) * step;
  return holder.replaceChildren(element("input", { ...input, min: low, max: high, step: "any", value: middle }));
}
