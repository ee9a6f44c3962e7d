// A query from the form or as SQL: {questions: [...]} or {sql}.

import { element } from "./elements.js";
import { fieldError } from "./field_errors.js";

const NUMBERS = ["mean", "sum", "variance", "std", "quantile", "min", "max", "regression"];
const OPERATORS = { number: ["=", "!=", "<", "<=", ">", ">="], category: ["=", "!="] };

const place = (id) => document.getElementById(id);
const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`).value;
const ticked = (id) => [...place(id).querySelectorAll("input:checked")].map((box) => box.value);

/** The form of the columns; `changed` is called whenever the query changes. */
export function builder(columns, changed) {
  const find = (name) => columns.find((one) => one.name === name);
  boxes("by", columns.map((one) => one.name));
  place("add-condition").addEventListener("click", () => addCondition(columns, find, changed));
  place("ask").addEventListener("input", (event) => {
    if (event.target.closest("#wishes")) return;
    arrange(columns);
    changed();
  });
  arrange(columns);
  return {
    asked: () => (chosen("form") === "sql" ? { sql: place("sql").value } : { questions: [one(find)] }),
    check: () => check(),
    state,
    restore: (kept) => restore(kept, columns, find, changed),
  };
}

/** Whether every visible field is valid; invalid fields show an error. */
function check() {
  const clicks = chosen("form") === "clicks";
  const errors = [[place("sql"), clicks || place("sql").value.trim() ? null : "Enter a SELECT statement."]];
  const share = Number(place("share").value);
  errors.push([place("share"), !clicks || place("what").value !== "quantile" || (share > 0 && share < 1) ? null : "Enter a number between 0 and 1."]);
  for (const field of document.querySelectorAll("#where input.value")) {
    errors.push([field, !clicks || (field.value.trim() !== "" && !field.validity.badInput) ? null : "Enter a number."]);
  }
  for (const [field, text] of errors) fieldError(field, text);
  return errors.every(([, text]) => !text);
}

/** The current values of the form. */
function state() {
  const row = (line) => [".column", ".operator", ".value"].map((part) => line.querySelector(part).value);
  return {
    form: chosen("form"), what: place("what").value, column: place("column").value, share: place("share").value, by: ticked("by"), on: ticked("on"),
    joined: chosen("joined"), where: [...place("where").children].map(row), sql: place("sql").value,
  };
}

/** Fill in the form again; columns that no longer exist are skipped. */
function restore(kept, columns, find, changed) {
  const choose = (name, value) => { const box = document.querySelector(`input[name="${name}"][value="${CSS.escape(value)}"]`); if (box) box.checked = true; };
  const tick = (id, names) => { for (const box of place(id).querySelectorAll("input")) box.checked = names.includes(box.value); };
  choose("form", kept.form);
  choose("joined", kept.joined);
  place("what").value = kept.what;
  place("share").value = kept.share;
  place("sql").value = kept.sql;
  tick("by", kept.by);
  place("where").replaceChildren();
  for (const [column, operator, value] of kept.where.filter(([name]) => find(name))) {
    const row = conditionRow(columns, find, changed);
    row.querySelector(".column").value = column;
    row.fit();
    row.querySelector(".operator").value = operator;
    row.querySelector(".value").value = value;
  }
  arrange(columns);
  if (find(kept.column)) place("column").value = kept.column;
  arrange(columns);
  tick("on", kept.on);
}

function boxes(id, names, kept = []) {
  const box = (name) => element("label", { class: "choice" }, element("input", { type: "checkbox", value: name, checked: kept.includes(name) }), ` ${name}`);
  place(id).replaceChildren(...names.map(box));
}

/** Show the fields of the chosen statistic. */
function arrange(columns) {
  const what = place("what").value;
  place("clicks").hidden = chosen("form") === "sql";
  place("sql-field").hidden = chosen("form") !== "sql";
  place("column-field").hidden = what === "count";
  place("share-field").hidden = what !== "quantile";
  place("on-field").hidden = what !== "regression";
  place("by-field").hidden = what === "regression";
  place("joined-field").hidden = place("where").children.length < 2;
  offer(columns.filter((one) => one.kind === "number" || !NUMBERS.includes(what)).map((one) => one.name));
  offerTerms(columns.filter((one) => one.kind === "number" && one.name !== place("column").value).map((one) => one.name));
}

/** The predictors of a regression; the first one is selected by default. */
function offerTerms(names) {
  if ([...place("on").querySelectorAll("input")].map((box) => box.value).join("\n") === names.join("\n")) return;
  const kept = ticked("on").filter((name) => names.includes(name));
  boxes("on", names, kept.length ? kept : names.slice(0, 1));
}

function offer(names) {
  const select = place("column");
  const before = select.value;
  if ([...select.options].map((one) => one.value).join("\n") === names.join("\n")) return;
  select.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  if (names.includes(before)) select.value = before;
}

function one(find) {
  const what = place("what").value;
  const asked = { ask: what };
  if (what !== "count") asked.column = place("column").value;
  if (what === "quantile") asked.share = place("share").value;
  if (what === "regression") asked.on = ticked("on");
  else asked.by = ticked("by");
  const parts = [...place("where").children].map((row) => condition(row, find));
  if (parts.length) asked.where = parts.length === 1 ? parts[0] : { [chosen("joined")]: parts };
  return asked;
}

function condition(row, find) {
  const column = find(row.querySelector(".column").value);
  const operator = row.querySelector(".operator").value;
  const field = row.querySelector(".value");
  if (column.kind === "category") return { compare: [column.name, operator, column.values[Number(field.value)]] };
  return { compare: [column.name, operator, Number(field.value)] };
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
  const spot = element("span");
  const gone = element("button", { type: "button", class: "plain" }, "Remove");
  const row = element("div", { class: "condition" }, names, operator, spot, gone);
  row.fit = () => fitted(find(names.value), operator, spot);
  names.addEventListener("input", row.fit); // before the form's own listener
  gone.addEventListener("click", () => {
    row.remove();
    arrange(columns);
    changed();
    place("add-condition").focus();
  });
  row.fit();
  place("where").append(row);
  return row;
}

/** The comparisons and values of a column. */
function fitted(column, operator, spot) {
  operator.replaceChildren(...OPERATORS[column.kind].map((sign) => element("option", { value: sign }, sign)));
  const about = { class: "value", "aria-label": "Value to compare with" };
  if (column.kind === "category") {
    const option = (value, number) => element("option", { value: number }, String(value));
    spot.replaceChildren(element("select", about, ...column.values.map(option)));
    return;
  }
  operator.value = ">=";
  const middle = column.low + Math.round((column.high - column.low) / column.step / 2) * column.step;
  spot.replaceChildren(element("input", { ...about, type: "number", min: column.low, max: column.high, step: "any", value: middle }));
}
