/**
 * Dates, points in time and times of day: the code is the number of grid cells since the first, as in the Python client.
 *
 * Days are counted by Date.UTC, never in the time of the device. A time zone is the policy's, not the device's.
 */

import { FIRST, Fraction, ZERO } from "./fraction.js";
import { Refused } from "./refused.js";
import { commas } from "./text.js";

export const MONTHS = { month: 1, quarter: 3, year: 12 };
export const SECONDS = { minute: 60, "15-minutes": 900, "30-minutes": 1800, hour: 3600 };
const [DAY, ERA] = [86_400, 146_097]; // days of 400 years: Date.UTC reads the years 0 to 99 as 1900 to 1999
const [FIRST_DAY, LAST_DAY] = [-719_162, 2_932_896]; // 0001-01-01 and 9999-12-31, in days since 1970
const CLOCK = String.raw`(\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,6})?)?`;
const ISO_DATE = /^(\d{4})-(\d\d)-(\d\d)$/;
const ISO_TIME = new RegExp(`^${CLOCK}$`);
const ISO_MOMENT = new RegExp(String.raw`^(\d{4}-\d\d-\d\d)(?:[T ]${CLOCK}(Z|[+-]\d\d:\d\d)?)?$`);

const floor = (count, size) => Math.floor(count / size);
const two = (count) => String(count).padStart(2, "0");

/** The days since 1970 of a day; months can be 12 and more. */
const daysOf = (year, month, day) => Date.UTC(year + 400, month, day) / 1000 / DAY - ERA;

function dayParts(days) {
  const date = new Date((days + ERA) * DAY * 1000);
  return [date.getUTCFullYear() - 400, date.getUTCMonth(), date.getUTCDate()];
}

/** The days since 1970 of "2024-02-29"; null if there is no such day. */
function readDay(text) {
  const [year, month, day] = (ISO_DATE.exec(text) ?? []).slice(1).map(Number);
  if (!year || month < 1 || month > 12) return null;
  const days = daysOf(year, month - 1, day);
  return String(dayParts(days)) === String([year, month - 1, day]) ? days : null;
}

/** The seconds since midnight of "14:30"; null if there is no such time. Parts of seconds are in the same cell. */
function readClock(hour, minute, second = "0") {
  const valid = Number(hour) < 24 && Number(minute) < 60 && Number(second) < 60;
  return valid ? Number(hour) * 3600 + Number(minute) * 60 + Number(second) : null;
}

/** The wall-clock seconds since 1970 of a date or time, and its difference from UTC (null if it has none). */
function readMoment(text) {
  const [, date, hour = "00", minute = "00", second, zone] = ISO_MOMENT.exec(text) ?? [];
  const [day, clock] = [date === undefined ? null : readDay(date), readClock(hour, minute, second)];
  const [hours, minutes] = (zone && zone !== "Z" ? zone.slice(1).split(":") : [0, 0]).map(Number);
  if (day === null || clock === null || hours > 23 || minutes > 59) return null;
  const offset = zone ? (zone[0] === "-" ? -1 : 1) * (hours * 3600 + minutes * 60) : null;
  return { wall: day * DAY + clock, offset };
}

/** The difference of a zone's wall-clock time from UTC, in seconds, at a point in time. */
function offsetsOf(zone) {
  const parts = { year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" };
  const format = zoned(() => new Intl.DateTimeFormat("en-US", { timeZone: zone, hourCycle: "h23", ...parts }), zone);
  const known = new Map(); // by quarter of an hour: no zone changes in between
  const compute = (seconds) => {
    const told = Object.fromEntries(format.formatToParts(seconds * 1000).map(({ type, value }) => [type, Number(value)]));
    return daysOf(told.year, told.month - 1, told.day) * DAY + told.hour * 3600 + told.minute * 60 + told.second - seconds;
  };
  return (seconds) => {
    const start = floor(seconds, 900) * 900;
    if (!known.has(start)) known.set(start, compute(start));
    return known.get(start);
  };
}

function zoned(work, zone) {
  try {
    return work();
  } catch {
    throw new Refused(`Unknown time zone: "${zone}".`, "Use a newer browser. Nothing was sent.");
  }
}

/** The first instant with a wall-clock time; one that a change to summer time skips counts by the clock before it. */
function instantAt(wall, offsetAt) {
  const [before, after] = [offsetAt(wall - DAY), offsetAt(wall + DAY)];
  return wall - (offsetAt(wall - Math.max(before, after)) === before ? before : after);
}

const countOf = (grid, size) => {
  const [number, name] = grid.split("-");
  return `${commas(size)} ${name ? `cells of ${number} ${name}` : size === 1 ? number : `${number}s`}`;
};

/** A universe of moments from the number of a cell (`at`) and the text of its first (`start`) and last part (`end`). */
function moments(content, { at, start, end, describe, input, noun }) {
  const { kind, grid, missing, outside = "missing", from, to } = content;
  const [origin, last] = [at(from), at(to)];
  if (origin === null || last === null) throw new Refused(`\`from\` or \`to\` is not ${noun}.`);
  if (last < origin) throw new Refused(`A ${kind} needs from <= to; it has from ${from} and to ${to}.`);
  const size = last - origin + 1;
  const span = (first, final) => {
    const [low, high] = [start(origin + first), end(origin + final)];
    return low === high ? low : `${low} to ${high}`;
  };
  const position = (value) => {
    const index = typeof value === "string" ? at(value.trim()) : null;
    return index === null ? null : BigInt(index - origin);
  };
  const bounds = { low: ZERO, high: new Fraction(size - 1), width: FIRST, cuts: [], steps: BigInt(size), starts: null };
  const says = `${countOf(grid, size)} ${describe(origin, last)}`;
  return { kind, grid, missing, outside, numeric: true, content, size, ...bounds, noun, position, span, says, input };
}

export function dates(content) {
  const { grid } = content;
  const months = MONTHS[grid];
  const length = grid === "week" ? 7 : 1; // 0001-01-01 was a Monday
  const index = (days) => {
    const [year, month] = dayParts(days);
    return months ? floor(12 * year + month, months) : floor(days - FIRST_DAY, length);
  };
  const first = (cell) => {
    const days = months ? daysOf(0, Math.min(Math.max(cell * months, 0), 120_000), 1) : cell * length + FIRST_DAY;
    return Math.min(Math.max(days, FIRST_DAY), LAST_DAY);
  };
  const text = (days) => {
    const [year, month, day] = dayParts(days);
    return `${String(year).padStart(4, "0")}-${two(month + 1)}-${two(day)}`;
  };
  const start = (cell) => text(first(cell));
  const end = (cell) => {
    const following = first(cell + 1);
    return text([FIRST_DAY, LAST_DAY].includes(following) ? following : following - 1);
  };
  const at = (value) => {
    const moment = readMoment(value);
    return moment === null || moment.offset !== null ? null : index(floor(moment.wall, DAY));
  };
  const describe = (origin, last) => `from ${start(origin)} to ${end(last)}`;
  return moments(content, { at, start, end, describe, input: "date", noun: 'a date, such as "2024-01-31"' });
}

export function timestamps(content) {
  const [step, { zone = "" }] = [SECONDS[content.grid], content];
  const offsetAt = zone ? offsetsOf(zone) : () => 0;
  const at = (value) => {
    const moment = readMoment(value);
    if (moment === null || (moment.offset !== null && !zone)) return null;
    return floor(moment.offset === null ? instantAt(moment.wall, offsetAt) : moment.wall - moment.offset, step);
  };
  const text = (seconds) => {
    if (seconds < FIRST_DAY * DAY) return "0001-01-01 00:00";
    if (seconds >= (LAST_DAY + 1) * DAY) return "9999-12-31 23:59";
    const wall = new Date((seconds + offsetAt(seconds) + ERA * DAY) * 1000);
    const day = `${String(wall.getUTCFullYear() - 400).padStart(4, "0")}-${two(wall.getUTCMonth() + 1)}-${two(wall.getUTCDate())}`;
    return `${day} ${two(wall.getUTCHours())}:${two(wall.getUTCMinutes())}`;
  };
  const start = (cell) => text(cell * step);
  const end = (cell) => text((cell + 1) * step - 60);
  const describe = (origin, last) => `from ${start(origin)} to ${start(last)}${zone ? ` in ${zone}` : ""}`;
  const input = "datetime-local";
  return moments(content, { at, start, end, describe, input, noun: 'a point in time, such as "2024-01-31 14:30"' });
}

export function times(content) {
  const step = SECONDS[content.grid];
  const at = (value) => {
    const parts = ISO_TIME.exec(value);
    const seconds = parts && readClock(...parts.slice(1));
    return seconds === null ? null : floor(seconds, step);
  };
  const text = (seconds) => {
    const inside = Math.min(Math.max(seconds, 0), DAY - 1);
    return `${two(floor(inside, 3600))}:${two(floor(inside, 60) % 60)}`;
  };
  const [start, end] = [(cell) => text(cell * step), (cell) => text((cell + 1) * step - 60)];
  const describe = (origin, last) => `from ${start(origin)} to ${start(last)}`;
  return moments(content, { at, start, end, describe, input: "time", noun: 'a time of day, such as "14:30"' });
}
