// Elements, and numbers for people. The same rules as html/render.py.

import { element } from "../client/elements.js";

export { element };

/** Fill a table: column names and rows of cells; numbers are aligned right. */
export function fill(table, columns, rows) {
  const cell = (value) => element("td", typeof value === "number" ? { class: "number" } : {}, typeof value === "number" ? number(value) : String(value ?? ""));
  const head = element("thead", {}, element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name))));
  const body = element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell))));
  table.replaceChildren(head, body);
}

/** A number for people; a date or time, which is text, as it is. */
export function number(value, digits = 4) {
  if (typeof value === "string" && Number.isNaN(Number(value))) return value;
  if (value === null || value === undefined || !Number.isFinite(Number(value))) return "unlimited";
  const amount = Number(value);
  if (Number.isInteger(amount) || Math.abs(amount) >= 1000) return amount.toLocaleString("en", { maximumFractionDigits: 0 });
  return String(Number(amount.toPrecision(digits)));
}

/** The unit of an account's amounts, for a reader: "epsilon" or "Z". */
export const shortUnit = (unit) => (unit === "z" ? "Z" : "epsilon");

/** An amount in a sentence: a Z is named, an epsilon is a number alone. */
export const amount = (value, unit, digits = 4) => (unit === "z" ? `Z ${number(value, digits)}` : number(value, digits));

export const chance = (value) => String(Number(Number(value).toPrecision(3)));

/** A fraction as a percentage. */
export const percent = (share, digits = 3) => `${number(100 * share, digits)}%`;

/** A number in the API's format: a decimal without an exponent and without trailing zeros. */
export const plainly = (value) => (Math.abs(value) < 1 ? value.toFixed(12) : String(Number(value.toPrecision(12)))).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
