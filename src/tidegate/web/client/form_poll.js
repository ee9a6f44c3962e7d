/**
 * The form of a poll: who can learn the answer, the questions with their odds, and one Send button. A confirmation replaces
 * the form once the report was received.
 *
 * The page contains the description (script#description) and the texts of its language (script#texts) as JSON. The part of
 * the URL after # is not sent to any server: fingerprint=... names the promised poll, code=... is an invitation code, which is
 * removed from the address bar.
 */

import { Client } from "./client.js";
import { element, sentence, show } from "./elements.js";
import { bodyOf, send } from "./form_sending.js";
import { StoredMemory } from "./memory.js";
import { pollField } from "./poll_fields.js";
import { showMemory } from "./poll_memory.js";
import { amountOf, dateOf, guarded, part } from "./poll_page.js";
import { reportParts } from "./poll_report.js";
import { Refused } from "./refused.js";
import { simulatorOf } from "./simulator.js";
import { Wording } from "./wording.js";

const contentOf = (name) => JSON.parse(part(name).textContent);

const REASONS = [
  [/ is closed$/, "closed"],
  [/^it answers another version|^its fingerprint is not/, "version"],
  [/its invitation|the invitation has/, "invitation"],
  [/as many reports as it accepts/, "full"],
  [/^malformed|is outside of what|another collection/, "malformed"],
]; // the reasons of the service, and the texts for them

/** Build the form of this page. */
export async function start() {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const expected = fragment.get("fingerprint");
  const description = contentOf("description");
  const { language } = document.querySelector("main").dataset;
  const words = new Wording(contentOf("texts"), description.poll, language);
  const page = { words, holder: description.holder || description.collection, busy: false };
  await guarded(page, async () => {
    page.memory = new StoredMemory();
    page.client = new Client(description, { memory: page.memory, fingerprint: expected });
    page.closes = dateOf(page);
    showDates(page);
    setFragment(location.hash);
    await showPromise(page);
    if (page.client.collection.closed) showClosed(words);
    else await ask(page);
    await showMemory(page);
    if (await isCodeDone(page, fragment.get("code"))) setFragment(expected ? `#fingerprint=${expected}` : "");
  });
  for (const event of ["online", "offline"]) addEventListener(event, () => showConnection(words));
  showConnection(words);
}

/** Get the permit of an invited person; whether the code of the link is no longer needed. */
async function isCodeDone(page, code) {
  const { closed, poll } = page.client.collection;
  if (closed || poll.access !== "invited") return true;
  const { invitationOf } = await import("./poll_code.js"); // only where it is needed
  return invitationOf(page, code);
}

function showDates({ words, closes }) {
  part("closes").textContent = words.fill("page.closes", { date: closes });
}

function showClosed(words) {
  show(part("closes"));
  show(part("problem"), sentence(words.fill("page.closed"), "what"));
}

/** Change the part after # of the URL and of the links to other languages. A code stays there until it was used. */
function setFragment(hash) {
  if (location.hash !== hash) history.replaceState(null, "", location.pathname + location.search + hash);
  for (const link of document.querySelectorAll("nav a")) link.hash = hash;
}

/** Show the fingerprint, the operators and the limit. */
async function showPromise({ words, client, holder }) {
  const { collection, operators } = client;
  const { lifetime } = await client.account();
  const key = lifetime === null ? "promise.no_limit" : "promise.limit";
  const limit = words.fill(key, { holder, lifetime: amountOf(words, lifetime) });
  const lines = [...collection.questions].map(([name, question]) => {
    const gamma = operators.get(name).lifetimeGamma();
    const epsilon = gamma === null ? words.fill("unlimited") : words.number(Math.log(gamma.toNumber()), 4);
    return element("li", {}, words.fill("promise.question", { name, operator: question.operator, epsilon }));
  });
  show(
    part("promise"),
    sentence(words.fill("promise.fingerprint")),
    element("p", {}, element("code", {}, collection.fingerprint)),
    element("ul", {}, ...lines),
    sentence(`${limit} ${words.fill("promise.device")}`),
  );
}

/** Show the questions of this person, what will be sent, and the Send button. */
async function ask(page) {
  const { words, client } = page;
  const { collection, operators } = client;
  const questions = await client.chosen();
  const total = collection.questions.size;
  page.fields = new Map(questions.map((name) => [name, fieldOf(page, name, questions.length === 1)]));
  const some = questions.length === 1 ? "asked.one" : "asked.some";
  const values = { total: words.whole(total), n: words.whole(questions.length) };
  const drawn = collection.ask === null ? [] : [sentence(words.fill(some, values), "hint")];
  const before = (await client.given()).some(({ question, answered }) => answered && questions.includes(question));
  const again = before ? [element("p", { class: "notice" }, words.fill("page.before"))] : [];
  page.button = element("button", { type: "button" }, words.fill("send.button"));
  page.button.addEventListener("click", () => guarded(page, () => sendReport(page)));
  page.report = reportDetails(page);
  const lines = questions.map((name) => {
    const asked = questions.length > 1 ? [element("strong", { lang: words.language }, words.question(name)), " "] : [];
    return element("li", {}, ...asked, words.odds(name, collection.questions.get(name), operators.get(name)));
  });
  const once = collection.repeats === "once" ? [sentence(words.fill("send.once"), "hint")] : [];
  const preview = element(
    "section",
    { class: "card", id: "preview", "aria-labelledby": "preview-title" },
    element("h2", { id: "preview-title" }, words.fill("send.title")),
    sentence(words.fill("send.about")),
    element("ul", {}, ...lines),
    page.report,
    ...once,
    element("p", {}, page.button),
  );
  const heading = element("h2", { id: "questions-title" }, words.fill("questions.title"));
  show(part("questions"), heading, ...drawn, ...again, ...[...page.fields.values()].map((field) => field.element), preview);
  part("questions").addEventListener("input", (event) => event.target.closest("[data-question] > :first-child") && changed(page));
  part("questions").addEventListener("submit", (event) => event.preventDefault()); // Enter in a field sends nothing
}

function fieldOf({ words, client, holder }, name, isOnly) {
  const [question, operator] = [client.collection.questions.get(name), client.operators.get(name)];
  const [chances, ...process] = words.sentences(name, question, operator);
  const odds = element("div", { class: "odds" }, sentence(chances), ...process.map((text) => sentence(text, "hint")));
  const simulator = simulatorOf(name, question, operator, words, holder, isOnly);
  return pollField(name, question, words, odds, ...(simulator ? [simulator] : []));
}

/** Another answer has another report. */
function changed(page) {
  page.report.open = false;
  show(part("status"));
  for (const field of page.fields.values()) if (!field.problem()) field.show("");
}

/** The true answers; null if one is not valid, which its field shows. */
function answersOf({ fields }, isShown = true) {
  const wrong = [...fields.values()].filter((field) => field.problem());
  if (isShown) {
    for (const field of fields.values()) field.show(field.problem());
    wrong[0]?.focus();
  }
  return wrong.length ? null : Object.fromEntries([...fields].map(([name, field]) => [name, field.read()]));
}

/** The exact report in a closed element. It is drawn when it is opened, or sent. */
function reportDetails(page) {
  const { words } = page;
  const content = element("div");
  const details = element("details", {}, element("summary", {}, words.fill("send.report")), content);
  details.addEventListener("toggle", () => details.open && guarded(page, () => showReport(page, content)));
  return details;
}

async function showReport(page, content) {
  const answers = answersOf(page, false);
  if (answers === null) return content.replaceChildren(sentence(page.words.fill("send.report.empty"), "hint"));
  return content.replaceChildren(...reportParts(page, withPermit(page, await page.client.draft(answers))));
}

const withPermit = ({ permit }, report) => (permit ? { ...report, invitation: permit } : report);

/** Send the report of the answers. It is charged before it is sent, and confirmed once the service has received it. */
async function sendReport(page) {
  const { words, client, button, holder } = page;
  if (page.busy) return;
  const answers = answersOf(page);
  if (answers === null) return;
  if (client.collection.poll.access === "invited" && !page.permit) {
    show(part("status"), sentence(words.fill("code.required"), "what"));
    return part("code").querySelector("input")?.focus();
  }
  [page.busy, button.disabled] = [true, true];
  show(part("status"), sentence(words.fill("send.sending")));
  try {
    const report = withPermit(page, await client.draft(answers));
    const outcome = await send(document.querySelector("main").dataset.sendTo, report, () => charge(page, answers, report));
    if (outcome.received) {
      await client.confirm(answers);
      return await confirmed(page, report, outcome);
    }
    show(part("status"), ...outcomeOf(words, holder, outcome));
  } catch (problem) {
    show(part("status"));
    throw problem;
  } finally {
    [page.busy, button.disabled] = [false, false];
    if (button.isConnected) button.focus();
  }
}

const chargedHere = new Set(); // ids of reports that this page charged: sending one again sends the same bytes

/** Charge the report. One that another tab has deleted or sent in the meantime is not sent. */
async function charge(page, answers, report) {
  if (chargedHere.has(report.id)) return;
  const charged = await page.client.start(answers, page.permit ?? null);
  if (bodyOf(charged) !== bodyOf(report)) throw new Refused("The report was changed in another tab.", "", { key: "elsewhere", values: {} });
  chargedHere.add(report.id);
}

/** The sentences of an outcome that is no confirmation. */
function outcomeOf(words, holder, { outcome, reason, status }) {
  if (outcome !== "refused") {
    const says = sentence(words.fill(`outcome.${outcome}`, { holder, status }), "what");
    return [says, ...(reason ? [original(words, reason)] : [])];
  }
  const key = REASONS.find(([pattern]) => pattern.test(reason))?.[1];
  return [sentence(words.fill(`outcome.refused${key ? `.${key}` : ""}`, { holder }), "what"), original(words, reason)];
}

const original = (words, reason) => sentence(words.fill("outcome.reason", { reason: words.quoted(reason) }), "hint");

/** Replace the form by the confirmation. */
async function confirmed(page, report, { outcome }) {
  const { words, client, closes, holder } = page;
  const { batch } = client.collection;
  const isAtClose = batch === null || batch === "close";
  const counted = isAtClose ? words.fill("sent.close", { date: closes }) : words.fill("sent.batch", { n: words.whole(batch.at_least - 1) });
  const known = outcome === "known" ? [sentence(words.fill("sent.known"))] : [];
  const heading = element("h2", { tabindex: "-1" }, words.fill("sent.title"));
  const details = element("details", {}, element("summary", {}, words.fill("send.report")), ...reportParts(page, report));
  for (const name of ["questions", "code", "status", "label", "closes"]) show(part(name));
  show(part("sent"), heading, ...known, sentence(counted), details);
  await showMemory(page);
  scrollTo({ top: 0 });
  heading.focus();
}

function showConnection(words) {
  show(part("connection"), ...(navigator.onLine === false ? [sentence(words.fill("page.offline"))] : []));
}

await start();
