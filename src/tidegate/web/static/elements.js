// Making elements, and numbers as people read them. The same rules as web/pages.py.

/** element("p", {class: "quiet"}, "text", child) */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/** Fill a table: names of columns, rows of cells; numbers stand to the right. */
export function fill(table, columns, rows) {
  const cell = (value) => element("td", typeof value === "number" ? { class: "number" } : {}, typeof value === "number" ? number(value) : String(value ?? ""));
  const head = element("thead", {}, element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name))));
  const body = element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell))));
  table.replaceChildren(head, body);
}

export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(Number(value))) return "unlimited";
  const given = Number(value);
  if (Number.isInteger(given) || Math.abs(given) >= 1000) return given.toLocaleString("en", { maximumFractionDigits: 0 });
  return String(Number(given.toPrecision(digits)));
}

export const chance = (value) => String(Number(Number(value).toPrecision(3)));
