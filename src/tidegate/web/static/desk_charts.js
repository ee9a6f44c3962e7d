// Pictures of a desk: exposure against its critical value, and what left of each group.

import { chart, colour } from "./chart.js";
import { keyed } from "./chart_key.js";
import { element } from "./elements.js";

const DASHES = ["solid", "dot", "dash", "longdash", "dashdot"];
const percent = (share) => `${Math.round(100 * share)}%`;
/** What is below its limit is never said to be at it: 99.9% at most. */
const below = (part) => (part < 1 && part > 0.985 ? `${Math.min(99.9, Math.floor(1000 * part) / 10).toFixed(1)}%` : percent(part));
const named = (track) => (track.group === "all" ? track.test : `${track.test}, ${track.group}`);

/** The parts of its critical value that a measure came to; none where there was too little to be tested. */
const parts = (track) => track.values.map((value, place) => (track.critical[place] ? value / track.critical[place] : null));

function most(tracks) {
  const found = tracks.map((track) => [Math.max(0, ...parts(track).filter((part) => part !== null)), track]);
  return found.reduce((best, one) => (one[0] > best[0] ? one : best), [0, null]);
}

/** Where the desk stands now: the test that is nearest to its critical value. */
export function nearest(state) {
  const now = Object.entries(state.tests).flatMap(([test, found]) => found.filter((one) => one.critical).map((one) => [one.value / one.critical, named({ test, group: one.group })]));
  if (!now.length) return "nothing to test yet";
  const [part, name] = now.reduce((best, one) => (one[0] > best[0] ? one : best));
  return `${below(part)}, ${name}`;
}

function title(tracks) {
  const [part, track] = most(tracks);
  if (!tracks.some((track) => track.records.length)) return "Nothing has left yet: there is no exposure";
  if (part >= 1) return `A promise is broken: exposure reached ${percent(part)} of its critical value`;
  if (!track) return "Too few records are out to be tested";
  return `Exposure stays below its critical value: ${below(part)} of it at most${tracks.length > 1 ? `, by ${named(track)}` : ""}`;
}

export function exposure(state, select) {
  choices(select, state.tracks);
  const one = state.tracks.find((track) => named(track) === select.value);
  const tracks = one ? [one] : state.tracks;
  document.getElementById("exposure").classList.toggle("over", most(tracks)[0] >= 1);
  return chart("exposure", {
    title: title(tracks),
    traces: () => (one ? measured(one) : shared(tracks)),
    layout: () => ({
      xaxis: { title: { text: one && one.group !== "all" ? `records of ${one.group} out` : "records out (of the group)" }, type: "log" },
      yaxis: one ? { title: { text: one.measure }, rangemode: "tozero" } : { title: { text: "of the critical value" }, tickformat: ".0%", range: [0, 1.1] },
      ...keyed(tracks.length + 1, 340),
    }),
    table: numbers(state),
  });
}

function choices(select, tracks) {
  const names = tracks.map(named);
  const known = [...select.options].slice(1).map((option) => option.value);
  if (names.join("\n") === known.join("\n")) return;
  const kept = select.value;
  select.replaceChildren(select.options[0], ...names.map((name) => element("option", { value: name }, name)));
  if (names.includes(kept)) select.value = kept;
}

function shared(tracks) {
  const last = Math.max(1, ...tracks.flatMap((track) => track.records));
  const lines = tracks.map((track, place) => ({
    name: named(track), x: track.records, y: parts(track), mode: "lines", connectgaps: false,
    line: { width: 2, dash: DASHES[place % DASHES.length], color: colour(place ? "quiet" : "accent") },
    opacity: place ? 0.85 : 1,
  }));
  const top = most(tracks)[1];
  const lead = lines[tracks.indexOf(top)];
  if (lead) for (const line of lines) line.line.color = line === lead ? colour("accent") : colour("quiet");
  return [...lines, limit([1, last], [1, 1])];
}

const limit = (x, y) => ({ name: "critical value", x, y, mode: "lines", line: { width: 2, dash: "dash", color: colour("wrong") } });

function measured(track) {
  const line = { name: named(track), x: track.records, y: track.values, mode: "lines+markers", marker: { size: 4 }, line: { width: 2, color: colour("accent") } };
  return [line, limit(track.records, track.critical)];
}

function numbers(state) {
  const rows = Object.entries(state.tests).flatMap(([test, found]) => found.map((one) => [test, one.group, one.value, one.critical ?? "too few to test", one.critical ? below(one.value / one.critical) : ""]));
  return { columns: ["test", "group", "measure now", "critical value", "share of it"], rows };
}

export function shares(state) {
  const groups = Object.keys(state.asked_for);
  const asked = groups.map((group) => state.asked_for[group]), out = groups.map((group) => state.out_in_all[group]);
  const whole = asked.reduce((a, b) => a + b, 0);
  const known = groups.map((group) => state.shares[group] * whole);
  const bar = (name, x, shade) => ({ type: "bar", orientation: "h", name, y: groups, x, marker: { color: colour(shade) } });
  const marks = () => ({ name: "as many as its known share", y: groups, x: known, mode: "markers", marker: { symbol: "line-ns-open", size: 16, color: colour("wrong"), line: { width: 3 } } });
  return chart("shares", {
    title: whole ? shareTitle(groups, asked, out) : "Nothing was asked for yet",
    traces: () => [bar("asked for", asked, "line"), bar("out", out, "accent"), marks()],
    layout: () => ({ barmode: "overlay", ...keyed(3, 120 + 38 * groups.length), xaxis: { title: { text: "records" } }, yaxis: { autorange: "reversed", type: "category" } }),
    table: {
      columns: ["group", "asked for", "out", "out of those asked for", "known share of all records", "share of what is out"],
      rows: groups.map((group, place) => [group, asked[place], out[place], asked[place] ? percent(out[place] / asked[place]) : "", percent(state.shares[group]), percent(out[place] / Math.max(1, out.reduce((a, b) => a + b, 0)))]),
    },
  });
}

function shareTitle(groups, asked, out) {
  const found = groups.map((group, place) => [asked[place] ? out[place] / asked[place] : null, group]).filter(([part]) => part !== null);
  const low = found.reduce((a, b) => (b[0] < a[0] ? b : a)), high = found.reduce((a, b) => (b[0] > a[0] ? b : a));
  if (low[0] === 1) return "All that was asked for is out";
  return low[1] === high[1] ? `Of ${low[1]} ${percent(low[0])} of what was asked for is out` : `Of ${low[1]} ${percent(low[0])} of what was asked for is out, of ${high[1]} ${percent(high[0])}`;
}

/** What every test of the promise sees and does not see. */
export function showTests(place, watched) {
  place.replaceChildren(...Object.entries(watched).map(([name, one]) =>
    element("section", {}, element("h3", {}, name),
      element("p", {}, element("strong", {}, "Sees "), `${one.sees}.`),
      element("p", {}, element("strong", {}, "Does not see "), `${one.blind}.`))));
}
