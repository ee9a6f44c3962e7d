// The released records of a desk, page by page.

import { fill } from "./elements.js";
import { get } from "./api.js";

const PAGE = 20;
const at = (id) => document.getElementById(id);

/** Return a function that shows the current page of released records again. */
export function releasedRecords(desk) {
  const pages = [""]; // the cursor of each page
  async function show() {
    const page = await get(`${desk.at}/released?limit=${PAGE}&cursor=${pages.at(-1)}`);
    if (!page) return;
    at("no-records").hidden = page.records.length > 0 || pages.length > 1;
    fill(at("released"), page.records.length ? desk.releases : [], page.records.map((record) => desk.releases.map((name) => record[name] ?? "missing")));
    at("earlier").hidden = pages.length === 1;
    at("later").hidden = page.next === null;
    at("later").onclick = () => { pages.push(page.next); show(); };
  }
  at("earlier").onclick = () => { pages.pop(); show(); };
  return show;
}
