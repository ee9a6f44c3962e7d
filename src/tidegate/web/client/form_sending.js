/** Sending a report, and what came of it in words. Nothing but the report leaves: no cookie, no referrer, no answer. */

const PATIENCE = 30_000; // milliseconds until an answer is no longer waited for
const AGAIN = "Press Send again: the same report is sent, and it counts once.";
const UNCONFIRMED = "It is not confirmed that your report was received.";
const COUNTED = "It waits without its time and is counted together with other reports. Sent again it counts once.";
const UNREACHED = "The holder could not be reached.";
const LATE = "The holder did not answer in time.";
const OFFLINE = {
  received: false,
  what: "You are offline. Nothing was sent.",
  next: "The report stays in this page: press Send when you are back.",
};

/** What is sent, as text: exactly these bytes. */
export const bodyOf = (report) => JSON.stringify({ reports: [report] });

/**
 * { received, what, next }: whether the report was received, what happened, what to do. Never throws.
 *
 * `start` is awaited before anything leaves, and not called where nothing can leave.
 */
export async function send(address, report, start) {
  if (navigator.onLine === false) return OFFLINE;
  await start();
  const giveUp = new AbortController();
  const timer = setTimeout(() => giveUp.abort(), PATIENCE);
  try {
    const answer = await fetch(address, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: bodyOf(report),
      credentials: "omit",
      referrerPolicy: "no-referrer",
      cache: "no-store",
      redirect: "error",
      signal: giveUp.signal,
    });
    const text = await answer.text();
    return answer.ok ? verdictIn(text) : errorIn(answer.status, text);
  } catch {
    return unconfirmed(giveUp.signal.aborted ? LATE : UNREACHED);
  } finally {
    clearTimeout(timer);
  }
}

const unconfirmed = (why = "") => ({ received: false, what: [why, UNCONFIRMED].filter(Boolean).join(" "), next: AGAIN });

/** The verdict of one report. Anything but the service's own form of it confirms nothing. */
function verdictIn(text) {
  const verdicts = parsed(text)?.verdicts;
  const { place, verdict, reason } = (Array.isArray(verdicts) && verdicts.length === 1 && verdicts[0]) || {};
  if (place !== 0) return unconfirmed();
  if (verdict === "accepted") return { received: true, what: "Your report was received.", next: COUNTED };
  if (verdict === "known") return { received: true, what: "Your report was received before. It counts once.", next: "" };
  if (verdict !== "refused") return unconfirmed();
  return { received: false, what: `The report was refused: ${typeof reason === "string" ? reason : "no reason was given"}.`, next: "" };
}

function errorIn(status, text) {
  const error = parsed(text)?.error;
  const what = typeof error?.what === "string" ? error.what : `The holder answered with an error (${status}).`;
  return { received: false, what, next: typeof error?.do === "string" ? error.do : "Press Send to try again later." };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
