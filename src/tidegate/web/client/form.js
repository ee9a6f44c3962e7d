/**
 * The form of a collection: questions, what would be sent and what follows from it, and only then sending.
 *
 * The page holds the description (script#description, as JSON) and where reports go (main[data-send-to]). An address that
 * ends in #fingerprint=... names the collection that the person was promised; what is behind # is not sent to any server.
 */

import { concluded, sentWords } from "./aloud.js";
import { Client } from "./client.js";
import { codeOf } from "./coding.js";
import { element, sentence, show } from "./elements.js";
import { fieldFor } from "./form_fields.js";
import { bodyOf, send } from "./form_sending.js";
import { Refused } from "./refused.js";
import { say } from "./saying.js";

const SHOW = "Show what would be sent";
const place = (name) => document.getElementById(name);

/** Build the form of this page. */
export async function start() {
  const expected = new URLSearchParams(location.hash.slice(1)).get("fingerprint");
  await telling(async () => {
    const client = new Client(JSON.parse(place("description").textContent), { fingerprint: expected });
    promise(client.collection, await client.account(), expected);
    await showGiven(client);
    if (client.collection.closed) show(place("problem"), sentence("This collection is closed: no more reports are taken."));
    else ask(client);
  });
  for (const event of ["online", "offline"]) addEventListener(event, showConnection);
  showConnection();
}

/** Do something, and say so where it is refused. */
async function telling(work) {
  show(place("problem"));
  try {
    await work();
  } catch (problem) {
    const known = problem instanceof Refused;
    const { what, next } = known ? problem : { what: "Something went wrong in this page.", next: "Nothing was sent." };
    show(place("problem"), sentence(what, "what"), ...(next ? [sentence(next)] : []));
    place("problem").scrollIntoView({ block: "nearest" });
    if (!known) throw problem;
  }
}

const REPEATS = {
  memoised: "You may answer as often as you are asked: the same answer gives the same report, which tells nothing new.",
  once: "One report is taken of each person. Looking at it is free; after Send other answers are not taken.",
  "two-layers": "You may answer as often as you are asked: each report is made afresh from one kept in this browser.",
};

/** What the holder promised, by name and fingerprint. */
function promise({ name, version, repeats, fingerprint }, { holder, lifetime }, expected) {
  place("repeats").textContent = REPEATS[repeats];
  const most = lifetime === null ? "without limit" : `of epsilon ${say(lifetime, 4)} at most, and this page refuses to send more`;
  const checked = expected ? "It is the one that your link names." : "Compare it with the one you were given, if you were.";
  show(
    place("promise"),
    sentence(`Collection ${name}, version ${version}. Its questions and how they are randomized have this fingerprint:`),
    element("p", {}, element("code", {}, fingerprint)),
    sentence(`All your answers to ${holder} from this browser together have a loss ${most}.`),
    sentence(`It was checked in this page before anything else. ${checked}`),
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

/** The true answers; null where one cannot be taken, which its field says. */
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
  if (answer === undefined) return "Choose one.";
  try {
    codeOf(question, answer);
    return "";
  } catch (problem) {
    if (problem instanceof Refused) return problem.what;
    throw problem;
  }
}

/** Randomize, and show the report before it is sent: this one and no other. */
async function preview(client, fields) {
  const answers = answersOf(client, fields);
  if (answers === null) return;
  const report = await client.draft(answers);
  if (changedSince(answers, fields)) return; // typed on while it was drawn: that report is not for these answers
  const button = element("button", { type: "button" }, "Send");
  const heading = element("h2", { tabindex: "-1" }, "This would be sent");
  const yet = sentence("Nothing has been sent yet.", "hint");
  button.addEventListener("click", () => telling(() => sending(client, answers, report, button, yet)));
  const summary = element("summary", {}, "The whole report, letter by letter");
  const whole = element("details", {}, summary, element("pre", {}, bodyOf(report)));
  show(place("status"));
  show(place("preview"), heading, linesOf(client, report), whole, yet, element("p", {}, button));
  heading.focus();
  await showGiven(client);
}

/** The sentences of `Client.told`, with what is sent standing out. */
function linesOf({ collection, operators }, report) {
  const lines = [...collection.questions].map(([name, question]) => {
    const given = [question, operators.get(name), report.answers[name]];
    const sent = element("p", { class: "sent" }, "We will send ", element("strong", {}, sentWords(...given)), ".");
    return [element("dt", {}, name), element("dd", { "data-told": name }, sent, sentence(concluded(...given)))];
  });
  return element("dl", {}, ...lines.flat());
}

/** Send the report that was shown. It is charged before it leaves, and confirmed when the service says that it has it. */
async function sending(client, answers, report, button, yet) {
  button.disabled = true;
  show(place("status"), sentence("Sending one report ..."));
  const start = async () => {
    await startOf(client, answers, report);
    yet.textContent = "This report has left this page.";
  };
  try {
    const { received, what, next } = await send(document.querySelector("main").dataset.sendTo, report, start);
    if (received) await client.confirm(answers);
    if (received) yet.textContent = "This very report was received.";
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

/** Charge the report that was shown. What was forgotten or sent by another tab since is not sent under its name. */
async function startOf(client, answers, report) {
  const isShown = (other) => bodyOf(other) === bodyOf(report);
  if (sentHere.has(report.id) || (isShown(await client.draft(answers)) && isShown(await client.start(answers)))) {
    sentHere.add(report.id);
    return;
  }
  throw new Refused(
    "This report is no longer the one that this browser keeps: it was sent or forgotten elsewhere. Nothing was sent.",
    `Press "${SHOW}" again.`,
  );
}

const sentHere = new Set(); // ids of reports that this page charged: sent again they are the same bytes

const KEPT =
  "Your answers are kept in this browser, as codes, so that answering again tells nothing new. " +
  "Whoever uses this browser could find them; they are never sent.";
const FORGET = "Forgetting removes answers and drafts of all forms of this site. What they used stays counted.";

/** What this browser's answers give away so far, where it keeps some. */
async function showGiven(client) {
  const [given, account] = [await client.given(), await client.account()];
  if (!client.remembers() && account.spent?.equals(0n)) return show(place("given"));
  const heading = element("h2", {}, "What your answers here give away so far");
  const lines = given.filter(({ answered }) => answered > 0).map((one) => element("li", {}, String(one)));
  const list = element("ul", {}, ...lines, element("li", {}, String(account)));
  const button = element("button", { type: "button" }, "Forget my answers");
  button.addEventListener("click", () => telling(() => forget(client)));
  const kept = client.remembers() ? [sentence(KEPT, "hint"), sentence(FORGET, "hint"), element("p", {}, button)] : [];
  return show(place("given"), heading, list, ...kept);
}

async function forget(client) {
  await client.forget();
  show(place("preview"));
  show(place("status"), sentence("Your answers and drafts were removed from this browser.", "good"));
  await showGiven(client);
}

function showConnection() {
  const away = "You are offline. You can fill in the form and see what would be sent; to send it you must be online.";
  show(place("connection"), ...(navigator.onLine === false ? [sentence(away)] : []));
}

await start();
