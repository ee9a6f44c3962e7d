// An answer: the number with its interval, its cost, its ledger entry, and the change of the meters; groups as bars and a table.

import { show } from "./chart.js";
import { element, fill, number } from "./elements.js";

const place = (id) => document.getElementById(id);

/** Show one answer, several answers of one charge, or results derived from earlier answers. */
export function answered(told) {
  const parts = told.answers ?? (told.derivations ? derivedParts(told.derivations) : [told]);
  const lines = parts.flatMap(lineOf);
  lines.push(element("p", { class: "quiet" }, told.derivations ? "Derived from earlier answers, free." : charged(told)));
  place("told").replaceChildren(element("h2", {}, "Answer"), ...lines);
  place("result").hidden = false;
  place("bars").hidden = !told.charts.answer;
  if (told.charts.answer) show("answer-chart", told.charts.answer);
  place("result").scrollIntoView({ block: "nearest" });
  place("result").focus({ preventScroll: true });
}

function lineOf(part) {
  const made = [element("p", { class: "quiet" }, `${part.question.charAt(0).toUpperCase()}${part.question.slice(1)}`)];
  if (part.rows.length === 1) made.push(element("p", { class: "answer" }, ...single(part.rows[0], part.statistic)));
  else if (part.rows.length) made.push(tableOf(part));
  else made.push(element("p", {}, "This cannot be derived from earlier answers."));
  if (part.caution) made.push(element("p", { class: "quiet small" }, `${part.caution.charAt(0).toUpperCase()}${part.caution.slice(1)}.`));
  return made;
}

function single(row, statistic) {
  const value = element("strong", {}, number(row[statistic], 6));
  if (row.low === undefined) return [value];
  return [value, element("span", { class: "quiet small" }, `  95% interval ${number(row.low, 6)} to ${number(row.high, 6)}`)];
}

function charged(told) {
  const free = Number(told.cost) === 0;
  const moves = Object.entries(told.identification).map(([name, one]) => `identification of ${name} at most ${short(one.before)} → ${short(one.after)} (limit ${short(one.ceiling)})`);
  const cost = free ? "Stored answer, free" : `Cost ${number(told.cost)}`;
  const certainty = `yes/no certainty at most ${short(told.yes_no.before)} → ${short(told.yes_no.after)} (limit ${short(told.yes_no.ceiling)})`;
  return [`${cost}, ${number(told.left)} remaining`, ...moves, certainty, `entry ${told.entry.slice(0, 8)}`].join(" · ");
}

const short = (value) => String(Number(Number(value).toPrecision(3)));

function tableOf(part) {
  const columns = Object.keys(part.rows[0]).filter((name) => name !== "noisy"); // it is behind the chart, with the numbers
  const table = element("table");
  fill(table, columns, part.rows.map((row) => columns.map((name) => row[name] ?? "(missing)")));
  for (const [spot, head] of [...table.querySelectorAll("th")].entries()) head.classList.toggle("number", typeof part.rows[0][columns[spot]] === "number");
  return element("div", { class: "scroll" }, table);
}

/** Derived results in the form of an answer. */
const derivedParts = (derivations) => derivations.map(({ question, derived }) => ({ question, statistic: "value", rows: derived?.rows ?? [], caution: derived ? derived.says : "" }));
