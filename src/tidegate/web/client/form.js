/**
 * The form of a collection: questions, a preview of the report and its meaning, and only then sending.
 *
 * The page contains the description (script#description, as JSON) and the address for reports (main[data-send-to]). A URL
 * that ends in #fingerprint=... names the promised collection; the part after # is not sent to any server.
 */

import { concluded, sentWords } from "./explain.js";
import { Client } from "./client.js";
import { codeOf } from "./coding.js";
import { element, sentence, show } from "./elements.js";
import { fieldFor } from "./form_fields.js";
import { bodyOf, send } from "./form_sending.js";
import { Refused } from "./refused.js";
import { say } from "./text.js";

const SHOW = "Preview my report";
const place = (name) => document.getElementById(name);

/** Build the form of this page. */
export async function start() {
  const expected = new URLSearchParams(location.hash.slice(1)).get("fingerprint");
  await telling(async () => {
    const client = new Client(JSON.parse(place("description").textContent), { fingerprint: expected });
    promise(client.collection, await client.account(), expected);
    await showGiven(client);
    if (client.collection.closed) show(place("problem"), sentence("This collection is closed. It accepts no more reports."));
    else ask(client);
  });
  for (const event of ["online", "offline"]) addEventListener(event, showConnection);
  showConnection();
}

/** Do the work, and show an error if it fails. */
async function telling(work) {
  show(place("problem"));
  try {
    await work();
  } catch (problem) {
    const known = problem instanceof Refused;
    const { what, next } = known ? problem : { what: "This page failed.", next: "Nothing was sent." };
    show(place("problem"), sentence(what, "what"), ...(next ? [sentence(next)] : []));
    place("problem").scrollIntoView({ block: "nearest" });
    if (!known) throw problem;
  }
}

const REPEATS = {
  memoised: "You can answer more than once. The same answer always gives the same report, which reveals nothing new.",
  once: "Each person can send one report. The preview is free. After you press Send, other answers are not accepted.",
  "two-layers": "You can answer more than once. Each report is randomized again, from an answer that is stored in this browser.",
};

/** Show the holder's promise, by name and fingerprint. */
function promise({ name, version, repeats, fingerprint }, { holder, lifetime }, expected) {
  place("repeats").textContent = REPEATS[repeats];
  const limit = lifetime === null ? "has no limit" : `is at most epsilon ${say(lifetime, 4)}. This page refuses to send more`;
  const checked = expected ? "It matches the fingerprint in your link." : "If you were given a fingerprint, compare the two.";
  show(
    place("promise"),
    sentence(`Collection ${name}, version ${version}. This fingerprint identifies its questions and how answers are randomized:`),
    element("p", {}, element("code", {}, fingerprint)),
    sentence(`The total privacy loss of all your answers to ${holder} from this browser ${limit}.`),
    sentence(`This page checked the fingerprint before anything else. ${checked}`),
  );
}

function ask(client) {
  const { questions } = client.collection;
  const made = ([name, question]) => [name, fieldFor(name, question, client.operators.get(name))];
  const fields = new Map([...questions].map(made));
  const button = element("button", { type: "submit" }, SHOW);
  place("questions").append(...[...fields.values()].map((field) => field.element), element("p", {}, button));
  place("questions").hidden = false;
  place("questions").addEventListener("input", () => [place("preview"), place("status")].forEach((part) => show(part)));
  place("questions").addEventListener("submit", (event) => {
    event.preventDefault();
    telling(() => preview(client, fields));
  });
}

/** The true answers; null if one is not valid, which its field shows. */
function answersOf(client, fields) {
  const wrong = [];
  const answers = Object.fromEntries([...fields].map(([name, field]) => [name, field.read()]));
  for (const [name, field] of fields) {
    const problem = problemOf(client.collection.questions.get(name), answers[name]);
    field.problem(problem);
    if (problem) wrong.push(field);
  }
  wrong[0]?.focus();
  return wrong.length ? null : answers;
}

function changedSince(answers, fields) {
  return [...fields].some(([name, field]) => JSON.stringify(field.read()) !== JSON.stringify(answers[name]));
}

function problemOf(question, answer) {
  if (answer === undefined) return "Choose an answer.";
  try {
    codeOf(question, answer);
    return "";
  } catch (problem) {
    if (problem instanceof Refused) return problem.what;
    throw problem;
  }
}

/** Randomize, and show the report before it is sent: exactly this report. */
async function preview(client, fields) {
  const answers = answersOf(client, fields);
  if (answers === null) return;
  const report = await client.draft(answers);
  if (changedSince(answers, fields)) return; // the answers changed in the meantime: this report is not for them
  const button = element("button", { type: "button" }, "Send");
  const heading = element("h2", { tabindex: "-1" }, "Your report");
  const yet = sentence("Nothing has been sent yet.", "hint");
  button.addEventListener("click", () => telling(() => sending(client, answers, report, button, yet)));
  const summary = element("summary", {}, "Exact content of the report");
  const whole = element("details", {}, summary, element("pre", {}, bodyOf(report)));
  show(place("status"));
  show(place("preview"), heading, linesOf(client, report), whole, yet, element("p", {}, button));
  heading.focus();
  await showGiven(client);
}

/** The sentences of `Client.told`, with the sent value emphasized. */
function linesOf({ collection, operators }, report) {
  const lines = [...collection.questions].map(([name, question]) => {
    const given = [question, operators.get(name), report.answers[name]];
    const sent = element("p", { class: "sent" }, "We will send ", element("strong", {}, sentWords(...given)), ".");
    return [element("dt", {}, name), element("dd", { "data-told": name }, sent, sentence(concluded(...given)))];
  });
  return element("dl", {}, ...lines.flat());
}

/** Send the report that was shown. It is charged before it is sent, and confirmed once the service has received it. */
async function sending(client, answers, report, button, yet) {
  button.disabled = true;
  show(place("status"), sentence("Sending one report ..."));
  const start = async () => {
    await startOf(client, answers, report);
    yet.textContent = "This report was sent from this page.";
  };
  try {
    const { received, what, next } = await send(document.querySelector("main").dataset.sendTo, report, start);
    if (received) await client.confirm(answers);
    if (received) yet.textContent = "This report was received.";
    show(place("status"), sentence(what, received ? "good" : "what"), ...(next ? [sentence(next)] : []));
    button.textContent = received ? "Send again" : "Send";
  } catch (problem) {
    show(place("status"));
    throw problem;
  } finally {
    button.disabled = false;
    button.focus();
    await showGiven(client);
  }
}

/** Charge the report that was shown. A report that another tab has deleted or sent in the meantime is not sent. */
async function startOf(client, answers, report) {
  const isShown = (other) => bodyOf(other) === bodyOf(report);
  if (sentHere.has(report.id) || (isShown(await client.draft(answers)) && isShown(await client.start(answers)))) {
    sentHere.add(report.id);
    return;
  }
  throw new Refused(
    "This browser no longer stores this report: it was sent or deleted in another tab. Nothing was sent.",
    `Press "${SHOW}" again.`,
  );
}

const sentHere = new Set(); // ids of reports that this page charged: sending one again sends the same bytes

const KEPT =
  "Your answers are stored in this browser, as codes, so that answering again reveals nothing new. " +
  "Anybody who uses this browser could find them. They are never sent.";
const FORGET = "Deleting removes the answers and drafts of all forms of this site. The privacy loss already used still counts.";

/** Show what the answers from this browser have revealed so far, if it stores any. */
async function showGiven(client) {
  const [given, account] = [await client.given(), await client.account()];
  if (!client.remembers() && account.spent?.equals(0n)) return show(place("given"));
  const heading = element("h2", {}, "What your answers have revealed so far");
  const lines = given.filter(({ answered }) => answered > 0).map((one) => element("li", {}, String(one)));
  const list = element("ul", {}, ...lines, element("li", {}, String(account)));
  const button = element("button", { type: "button" }, "Delete my answers");
  button.addEventListener("click", () => telling(() => forget(client)));
  const kept = client.remembers() ? [sentence(KEPT, "hint"), sentence(FORGET, "hint"), element("p", {}, button)] : [];
  return show(place("given"), heading, list, ...kept);
}

async function forget(client) {
  await client.forget();
  show(place("preview"));
  show(place("status"), sentence("Your answers and drafts were deleted from this browser.", "good"));
  await showGiven(client);
}

function showConnection() {
  const away = "You are offline. You can fill in the form and preview your report. To send it, you must be online.";
  show(place("connection"), ...(navigator.onLine === false ? [sentence(away)] : []));
}

await start();
