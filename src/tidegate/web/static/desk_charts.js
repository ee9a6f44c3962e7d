// The charts of a release desk. The service renders them; this file handles the choice of a test and the texts.

import { show } from "./chart.js";
import { element } from "./elements.js";

const percent = (share) => `${Math.round(100 * share)}%`;
/** A share below its limit is never rounded up to 100%. */
const below = (part) => (part < 1 && part > 0.985 ? `${Math.min(99.9, Math.floor(1000 * part) / 10).toFixed(1)}%` : percent(part));
const named = (track) => (track.group === "all" ? track.test : `${track.test}, ${track.group}`);

/** The test that is nearest to its critical value. */
export function nearest(state) {
  const now = Object.entries(state.tests).flatMap(([test, readings]) => readings.filter((reading) => reading.critical).map((reading) => [reading.value / reading.critical, named({ test, group: reading.group })]));
  if (!now.length) return "nothing to test yet";
  const [part, name] = now.reduce((best, reading) => (reading[0] > best[0] ? reading : best));
  return `${below(part)}, ${name}`;
}

/** Show both charts of a state that was requested with the chosen test. */
export function charts(state, select) {
  choices(select, state.tracks);
  const chosen = state.tracks.filter((track) => named(track) === select.value), shown = chosen.length ? chosen : state.tracks;
  const broken = shown.some((track) => track.values.some((value, place) => track.critical[place] && value >= track.critical[place]));
  document.getElementById("exposure").classList.toggle("over", broken);
  show("exposure", { ...state.charts.exposure, table: numbers(state) });
  show("shares", state.charts.shares);
}

function choices(select, tracks) {
  const names = tracks.map(named);
  const known = [...select.options].slice(1).map((option) => option.value);
  if (names.join("\n") === known.join("\n")) return;
  const selected = select.value;
  select.replaceChildren(select.options[0], ...names.map((name) => element("option", { value: name }, name)));
  if (names.includes(selected)) select.value = selected;
}

function numbers(state) {
  const rows = Object.entries(state.tests).flatMap(([test, readings]) => readings.map((reading) => [test, reading.group, reading.value, reading.critical ?? "too few to test", reading.critical ? below(reading.value / reading.critical) : ""]));
  return { columns: ["test", "group", "measure now", "critical value", "share of it"], rows };
}

/** Describe what every test of the promise detects and misses. */
export function showTests(place, watched) {
  place.replaceChildren(...Object.entries(watched).map(([name, reading]) =>
    element("section", {}, element("h3", {}, name),
      element("p", {}, element("strong", {}, "Detects: "), `${reading.sees}.`),
      element("p", {}, element("strong", {}, "Misses: "), `${reading.blind}.`))));
}
