// Times of a poll: a wall-clock time in a zone, and how long it is until then.

/** All zones of this browser, its own first. */
export function zones() {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const all = Intl.supportedValuesOf?.("timeZone") ?? [];
  return [...new Set([own, "UTC", ...all])];
}

/** The minutes by which a zone is ahead of UTC at an instant. */
function ahead(zone, instant) {
  const format = new Intl.DateTimeFormat("en-US", { timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" });
  const part = Object.fromEntries(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]));
  return Math.round((Date.UTC(part.year, part.month - 1, part.day, part.hour, part.minute, part.second) - instant) / 60_000);
}

/** The API's text of a time that a clock in a zone shows ("2026-12-01T18:00"): with its offset; null if it is no time. */
export function withZone(local, zone) {
  const shown = Date.parse(`${local}Z`);
  if (Number.isNaN(shown)) return null;
  let minutes = ahead(zone, shown);
  minutes = ahead(zone, shown - minutes * 60_000); // again at the instant itself, for days on which the clock changes
  const digits = (value) => String(value).padStart(2, "0");
  const size = Math.abs(minutes);
  const offset = minutes ? `${minutes < 0 ? "-" : "+"}${digits(Math.floor(size / 60))}:${digits(size % 60)}` : "Z";
  return `${local.length === 16 ? `${local}:00` : local}${offset}`;
}

/** A time for a clock's input field, some days after a moment, at a full hour. */
export function someDaysLater(moment, days, hour) {
  const day = new Date(Date.parse(moment) + days * 86_400_000).toISOString().slice(0, 10);
  return `${day}T${String(hour).padStart(2, "0")}:00`;
}

/** The time until an instant in words: "12 days and 3 hours". */
export function untilThen(instant, now = Date.now()) {
  const minutes = Math.floor((Date.parse(instant) - now) / 60_000);
  if (minutes < 1) return minutes < 0 ? "its time has come" : "less than a minute";
  const count = (value, unit) => `${value} ${unit}${value === 1 ? "" : "s"}`;
  const parts = [[Math.floor(minutes / 1440), "day"], [Math.floor(minutes / 60) % 24, "hour"], [minutes % 60, "minute"]];
  const first = parts.findIndex(([value]) => value > 0);
  return parts.slice(first, first + 2).filter(([value]) => value > 0).map(([value, unit]) => count(value, unit)).join(" and ");
}

/** An instant in a language and in the zone of this browser. */
export function dateIn(instant, language) {
  const parts = { year: "numeric", month: "long", day: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short" };
  return new Intl.DateTimeFormat(language, parts).format(new Date(instant));
}
