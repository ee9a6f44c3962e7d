/** Sending a report, and what came of it in words. Nothing but the report leaves: no cookie, no referrer, no answer. */

const OFFLINE = {
  taken: false,
  what: "You are offline. Nothing was sent.",
  next: "The report stays in this page: press Send when you are back.",
};
const UNREACHED = {
  taken: false,
  what: "The holder could not be reached.",
  next: "The report stays in this page: press Send to try again. Sent twice it counts once.",
};

/** What is sent, as text: exactly these bytes. */
export const bodyOf = (report) => JSON.stringify({ reports: [report] });

/** { taken, what, next }: whether the report was taken, what happened, what to do. Never throws. */
export async function send(address, report) {
  if (navigator.onLine === false) return OFFLINE;
  let answer;
  try {
    answer = await fetch(address, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: bodyOf(report),
      credentials: "omit",
      referrerPolicy: "no-referrer",
      cache: "no-store",
      redirect: "error",
    });
  } catch {
    return UNREACHED;
  }
  return verdict(answer.status, await answer.json().catch(() => null));
}

/** The server's answer in words. */
function verdict(status, told) {
  const refused = told?.reasons?.find((reason) => typeof reason === "string");
  if (status < 300 && refused) return { taken: refused.startsWith("replayed"), what: saysRefused(refused), next: "" };
  if (status < 300) return { taken: true, what: "Your report was taken.", next: "Sent again it counts once." };
  const error = told?.error ?? {};
  const what = typeof error.what === "string" ? error.what : `The holder answered with an error (${status}).`;
  return { taken: false, what, next: typeof error.do === "string" ? error.do : "Press Send to try again later." };
}

function saysRefused(reason) {
  if (reason.startsWith("replayed")) return "Your report was taken before; it counts once.";
  return `The report was refused: ${reason}.`;
}
