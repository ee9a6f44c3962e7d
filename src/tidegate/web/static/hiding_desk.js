// The release desk of a hiding promise: open the selection, request records, read quotas and released records.

import { showCode } from "./code.js";
import { releasedRecords } from "./desk_released.js";
import { requests } from "./desk_requests.js";
import { element, fill, percent } from "./elements.js";
import { comparison } from "./hiding_audit.js";
import { live, timed } from "./live.js";
import { get, quietly, tell, view } from "./api.js";

const MOST_GROUPS = 100, MOST_VALUES = 40;
const desk = view(), showReleased = releasedRecords(desk);
const at = (id) => document.getElementById(id);
const whole = (count) => count.toLocaleString("en");
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
let state = null;

// Opening

/** Confirm, then open a selection. The groups are in the request's body only. */
async function open(later) {
  if (!(await isSure(later))) return;
  const sensitive = later ? null : groups();
  showCode(desk.all_codes[later ? "later" : "open"]);
  const buttons = [at("open-later"), at("open").querySelector("button")];
  const text = "Reading the table and choosing records";
  const { value, error } = await timed(at("opening"), text, () => quietly("POST", desk.selections_at, { sensitive, later }), buttons);
  tell(error);
  if (!value) return;
  if (at("sensitive")) at("sensitive").value = "";
  await refresh();
  at("opened-now").textContent = `Selection ${value.epoch} is open: ${chosen(value)}. The others are never released.`;
  at("opened-now").focus();
}

function isSure(later) {
  const dialog = at("sure"), part = (name) => dialog.querySelector(`[data-part="${name}"]`);
  at("sure-title").textContent = later ? "Open the next selection?" : "Open the selection?";
  part("what").textContent = later
    ? "Records that were added since the last selection are chosen or withheld for good. This cannot be undone."
    : "Records that are not chosen now are never released. The choice cannot be repeated or undone.";
  return new Promise((decide) => {
    let yes = false;
    part("yes").onclick = () => { yes = true; dialog.close(); };
    part("no").onclick = () => dialog.close();
    dialog.addEventListener("close", () => decide(yes), { once: true });
    dialog.showModal();
  });
}

/** The private list: one group per line, as lists of labels; null if every group is hidden. */
function groups() {
  const field = at("sensitive");
  if (!field) return null;
  const lines = field.value.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
  return lines.map((line) => (desk.about.length > 1 ? line.split(",").map((label) => label.trim()) : [line]));
}

// Display

const quotaOf = (selection, group) => (selection.quotas[group] === null ? selection.sizes[group] : sum(selection.quotas[group]));
const inAll = (selection) => sum(selection.sizes.map((_, group) => quotaOf(selection, group)));
const chosen = (selection) => `${whole(inAll(selection))} of ${whole(sum(selection.sizes))} records (${percent(selection.share)}) can be released`;

function showSelections() {
  at("selections").replaceChildren(...state.selections.map((selection, index) => {
    const table = element("table", { class: "unbroken", "aria-label": `Quotas of selection ${selection.epoch}` });
    const details = element("details", index === state.selections.length - 1 ? { open: "" } : {},
      element("summary", {}, `Selection ${selection.epoch}, ${selection.opened}: ${chosen(selection)}`),
      element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": `Quotas of selection ${selection.epoch}, table` }, table), ...notes());
    quotas(table, selection);
    return details;
  }));
}

function quotas(table, selection) {
  const values = state.joint_values.slice(0, MOST_VALUES), hidden = new Set(selection.hidden), named = state.joint_groups.slice(0, MOST_GROUPS);
  const some = hidden.size < state.joint_groups.length;
  const cells = (row) => values.map((_, value) => (row === null ? "all" : row[value]));
  const rows = named.map((name, group) => [name, ...(some ? [hidden.has(group) ? "yes" : "no"] : []), selection.sizes[group], quotaOf(selection, group), ...cells(selection.quotas[group])]);
  fill(table, [desk.joint_about.join(", "), ...(some ? ["hidden"] : []), "records", "quota", ...values], rows);
  for (const row of table.rows) for (const cell of [...row.cells].slice(some ? 2 : 1)) cell.className = "number"; // "all" as well
}

function notes() {
  const groups = state.joint_groups.length, values = state.joint_values.length;
  if (groups <= MOST_GROUPS && values <= MOST_VALUES) return [];
  return [element("p", { class: "quiet" }, `The first ${Math.min(groups, MOST_GROUPS)} of ${whole(groups)} groups and ${Math.min(values, MOST_VALUES)} of ${whole(values)} values are listed. The JSON version has all.`)];
}

function showSays() {
  const [first, ...others] = state.says;
  at("says-first").textContent = `${first.says} Released columns: ${desk.releases.join(", ")}.`;
  at("says").replaceChildren(...others.map(({ about, says }) => element("div", {}, element("dt", {}, about.charAt(0).toUpperCase() + about.slice(1)), element("dd", {}, says))));
}

function show(latest) {
  const before = state?.open ? state : null;
  state = latest;
  at("not-open").hidden = state.open;
  for (const id of ["is-open", "observing", "records-released"]) at(id).hidden = !state.open;
  if (!state.open) return;
  const out = sum(Object.values(state.out_in_all)), last = state.selections.at(-1);
  at("out").textContent = whole(out);
  at("withheld").textContent = whole(state.withheld);
  at("share").textContent = whole(sum(state.selections.map(inAll)));
  at("opened").textContent = last.opened;
  const isNew = !before || JSON.stringify(before.selections) !== JSON.stringify(state.selections);
  if (isNew) { showSelections(); showSays(); }
  if (!before) at("records").value = Math.max(10, Math.min(desk.most_records, sum(last.sizes)));
  if (isNew || sum(Object.values(before.out_in_all)) !== out) showReleased();
}

async function refresh() {
  const latest = await get(desk.at);
  if (latest) show(latest);
  return latest !== null;
}

at("open").addEventListener("submit", (event) => { event.preventDefault(); open(false); });
at("open-later").addEventListener("click", () => open(true));
requests(desk, refresh);
comparison(desk);
show(desk.state);
live(3, refresh);
