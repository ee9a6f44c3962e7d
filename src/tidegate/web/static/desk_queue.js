// The queue of a release desk: a table with the tests that hold each record, in pages, with a choice of order.

import { element } from "./elements.js";
import { get } from "./api.js";

const PAGE = 20;
const at = (id) => document.getElementById(id);

/** How far a measure would be above its limit; a measure equal to its limit has reached it. */
function percent(share) {
  if (share < 1e-6) return "just reaches it";
  if (share >= 10) return `${Math.round(share).toLocaleString("en")} times the limit`;
  return share < 0.001 ? "less than 0.1%" : `${Number((100 * share).toPrecision(2))}%`;
}

const moment = (text) => `${new Date(text).toLocaleString("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZone: "UTC" })} UTC`;

function age(text) {
  const minutes = Math.max(0, Math.floor((Date.now() - new Date(text)) / 60_000));
  if (minutes < 60) return `${minutes} min`;
  return minutes < 2880 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} days`;
}

/** Each column: its name, the value by which a page is sorted, and its text. The service sorts by time, over all pages. */
function columnsOf(desk) {
  const first = (row) => row.obstacles[0];
  const held = (row) => (first(row) ? `${first(row).test}${first(row).group === "all" ? "" : `, ${first(row).group}`}${first(row).promise === desk.desk ? "" : ` (${first(row).promise})`}` : "none: released with the next decision");
  const more = (row) => (row.obstacles.length > 1 ? ` and ${row.obstacles.length - 1} more` : "");
  return [
    { name: "waiting since", text: (row) => `${moment(row.since)} (${age(row.since)})`, isTime: true },
    { name: desk.key || "key", value: (row) => row.key ?? "", text: (row) => row.key ?? `request ${row.number.toLocaleString("en")} (key is not stored)` },
    { name: desk.about.join(", "), value: (row) => row.group, text: (row) => row.group },
    { name: "test that holds it", value: held, text: (row) => held(row) + more(row) },
    { name: "above its limit", value: (row) => first(row)?.excess ?? -1, text: (row) => (typeof first(row)?.excess === "number" ? percent(first(row).excess) : ""), isNumber: true },
  ];
}

/** Return a function that shows the current page of the queue again. */
export function queue(desk) {
  const columns = columnsOf(desk);
  let pages = [""], newest = false, sorted = null, rows = [];

  async function show() {
    const page = await get(`${desk.at}/queue?limit=${PAGE}&cursor=${pages.at(-1)}&order=${newest ? "newest" : "oldest"}`);
    if (!page) return;
    if (!page.requests.length && pages.length > 1) { pages = [""]; return show(); } // released in the meantime
    rows = page.requests;
    at("queue-back").hidden = pages.length === 1;
    at("queue-next").hidden = page.next === null;
    at("queue-next").onclick = () => { pages.push(page.next); show(); };
    draw();
  }

  function draw(focus = -1) {
    const table = at("waiting-requests");
    if (!rows.length) return table.replaceChildren();
    const column = sorted && columns[sorted.index];
    const compare = (a, b) => (typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
    const shown = column ? rows.toSorted((a, b) => (sorted.down ? -1 : 1) * compare(column.value(a), column.value(b))) : rows;
    const head = element("thead", {}, element("tr", {}, ...columns.map(header)));
    const cell = ({ isNumber, text }, row) => element("td", isNumber ? { class: "number" } : {}, text(row));
    table.replaceChildren(head, element("tbody", {}, ...shown.map((row) => element("tr", {}, ...columns.map((each) => cell(each, row))))));
    if (focus >= 0) table.querySelectorAll("th button")[focus].focus();
  }

  function header({ name, isTime, isNumber }, index) {
    const direction = isTime ? (sorted ? null : newest ? "descending" : "ascending") : sorted?.index === index ? (sorted.down ? "descending" : "ascending") : null;
    const button = element("button", { type: "button", title: isTime ? "Sort the whole queue" : "Sort this page" }, name);
    button.addEventListener("click", () => sort(index, isTime));
    return element("th", { scope: "col", ...(isNumber ? { class: "number" } : {}), ...(direction ? { "aria-sort": direction } : {}) }, button);
  }

  async function sort(index, isTime) {
    if (isTime) {
      newest = sorted ? newest : !newest;
      sorted = null;
      pages = [""];
      await show();
    } else {
      sorted = { index, down: sorted?.index === index ? !sorted.down : Boolean(columns[index].isNumber) };
    }
    draw(index);
  }

  at("queue-back").onclick = () => { pages.pop(); show(); };
  return show;
}
