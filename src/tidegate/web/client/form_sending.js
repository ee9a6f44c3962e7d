/** Sending a report and describing the outcome. Only the report is sent: no cookie, no referrer, no true answer. */

const PATIENCE = 30_000; // milliseconds to wait for a response
const AGAIN = "Press Send again. The same report is sent, and it counts only once.";
const UNCONFIRMED = "It is not certain that your report was received.";
const COUNTED = "It is stored without its time and counted together with other reports. If you send it again, it still counts only once.";
const UNREACHED = "The holder's service could not be reached.";
const LATE = "The holder's service did not respond in time.";
const OFFLINE = {
  outcome: "offline",
  received: false,
  what: "You are offline. Nothing was sent.",
  next: "Your report stays in this page. Press Send when you are online again.",
};

/** The body of the request: exactly these bytes are sent. */
export const bodyOf = (report) => JSON.stringify({ reports: [report] });

/**
 * Send a report; return { outcome, received, what, next, reason, status }: the outcome by name ("accepted", "known",
 * "refused", "unconfirmed", "unreached", "late", "offline", "error"), whether it was received, what happened, what to do, and
 * the service's reason or status. Never throws.
 *
 * `start` is awaited before anything is sent, and not called if nothing can be sent.
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
    return giveUp.signal.aborted ? unconfirmed(LATE, "late") : unconfirmed(UNREACHED, "unreached");
  } finally {
    clearTimeout(timer);
  }
}

const unconfirmed = (why = "", outcome = "unconfirmed") => ({
  outcome,
  received: false,
  what: [why, UNCONFIRMED].filter(Boolean).join(" "),
  next: AGAIN,
});

/** The verdict of one report. Any unexpected response confirms nothing. */
function verdictIn(text) {
  const verdicts = parsed(text)?.verdicts;
  const { place, verdict, reason } = (Array.isArray(verdicts) && verdicts.length === 1 && verdicts[0]) || {};
  if (place !== 0) return unconfirmed();
  const outcome = verdict;
  if (verdict === "accepted") return { outcome, received: true, what: "Your report was received.", next: COUNTED };
  if (verdict === "known") return { outcome, received: true, what: "Your report was received earlier. It counts only once.", next: "" };
  if (verdict !== "refused") return unconfirmed();
  const why = typeof reason === "string" ? reason : "no reason was given";
  return { outcome, received: false, what: `Your report was refused: ${why}.`, next: "", reason: why };
}

function errorIn(status, text) {
  const problem = parsed(text); // RFC 9457
  const isKnown = typeof problem?.detail === "string";
  const what = isKnown ? problem.detail : `The holder's service responded with an error (${status}).`;
  const next = typeof problem?.do === "string" ? problem.do : "Press Send later to try again.";
  return { outcome: "error", received: false, what, next, status, reason: isKnown ? what : "" };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
