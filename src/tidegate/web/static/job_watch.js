// A running job: its stage, progress, elapsed and remaining time. The service sends events while the page is open. If the
// browser cannot get them, the page polls every two seconds while it is visible. Both stop once the job has ended.

import { url } from "./address.js";
import { number } from "./elements.js";
import { quietly, tell } from "./api.js";

const EVERY = 2000;
const ENDED = ["done", "failed", "cancelled"];
const PATIENCE = 30; // failed polls, after which the page stops polling
const panel = document.getElementById("running");
const noun = panel?.dataset.noun;
const part = (name) => panel.querySelector(`[data-part="${name}"]`);
let pace = null; // when this stage was first seen, and its progress then
let watched = "";
let source = null; // the open stream of events

/** Follow a job to its end; then update the lists of the page. */
export function watch(base, job, afterwards) {
  panel.hidden = false;
  part("title").textContent = `${noun.charAt(0).toUpperCase()}${noun.slice(1)} in progress`;
  watched = job.id;
  pace = null;
  show(job);
  const button = part("cancel");
  if (button) {
    button.hidden = button.disabled = false;
    button.onclick = () => cancel(base, job.id, button);
  }
  listen(base, job.id, afterwards);
}

/** Follow the events of a job. The browser connects again by itself, unless the service refuses the stream. */
function listen(base, id, afterwards) {
  source?.close();
  if (!window.EventSource) return void setTimeout(() => look(base, id, afterwards, 0), EVERY);
  source = new EventSource(url(`${base}/${id}/events`));
  const stream = source;
  const take = (event) => {
    if (watched !== id) return stream.close();
    const job = JSON.parse(event.data);
    show(job);
    if (!ENDED.includes(job.state)) return;
    stream.close();
    end(job, afterwards);
  };
  stream.addEventListener("progress", take);
  stream.addEventListener("end", take);
  stream.addEventListener("error", () => {
    if (stream.readyState !== EventSource.CLOSED || watched !== id) return;
    setTimeout(() => look(base, id, afterwards, 0), EVERY);
  });
}

async function look(base, id, afterwards, failures) {
  if (watched !== id) return;
  if (document.hidden) {
    document.addEventListener("visibilitychange", () => look(base, id, afterwards, failures), { once: true });
    return;
  }
  const { value, error } = await quietly("GET", `${base}/${id}`);
  if (value) show(value);
  else if (failures + 1 >= PATIENCE) return part("time").textContent = `The service has not responded for a minute. The ${noun} continues without this page. Reload the page later.`;
  else part("time").textContent = `No response (attempt ${failures + 1} of ${PATIENCE}): ${error.what} Trying again in 2 s.`;
  if (value && ENDED.includes(value.state)) return end(value, afterwards);
  setTimeout(() => look(base, id, afterwards, value ? 0 : failures + 1), EVERY);
}

async function cancel(base, id, button) {
  button.disabled = true;
  const { error } = await quietly("POST", `${base}/${id}/cancellation`);
  tell(error);
}

function show(job) {
  const { stage, done, of } = job.progress;
  const running = job.state === "running";
  part("asked").textContent = job.asked;
  const counted = running && of > 1 ? ` (${number(done)} of ${number(of)})` : "";
  part("stage").textContent = `${job.says.charAt(0).toUpperCase()}${job.says.slice(1)}${counted}`;
  part("bar").max = of || 1;
  part("bar").value = job.state === "done" ? of || 1 : done;
  part("time").textContent = `${ENDED.includes(job.state) ? "Duration: " : ""}${seconds(job.seconds)}${ENDED.includes(job.state) ? "." : " so far"}${running ? remaining(stage, done, of, job.seconds) : ""}`;
  part("resumed").hidden = !job.resumed;
}

/** The remaining time of this stage, estimated from its pace since it was first seen. */
function remaining(stage, done, of, now) {
  if (!pace || pace.stage !== stage) pace = { stage, done, now };
  const progressed = done - pace.done;
  if (progressed <= 0 || now <= pace.now) return "; no estimate for this stage yet";
  return `; about ${seconds(((now - pace.now) / progressed) * (of - done))} remaining in this stage`;
}

function seconds(duration) {
  const whole = Math.max(1, Math.round(duration));
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

async function end(job, afterwards) {
  watched = "";
  if (part("cancel")) part("cancel").hidden = true;
  if (job.state === "done") {
    part("title").textContent = "Done";
    part("stage").textContent = noun === "audit" ? "Read the report below." : "Download the tables below.";
  } else {
    part("title").textContent = job.state === "cancelled" ? `The ${noun} was cancelled` : `The ${noun} failed`;
    const missing = noun === "audit" ? "There is no report." : "No tables were created.";
    part("stage").textContent = `${missing} ${job.problem.what} ${job.problem.do}`; // it stays when the form shows its next price
    tell(job.problem);
  }
  await refresh(["account", "earlier", "code"]);
  afterwards();
}

/** Update parts of this page from the service. */
export async function refresh(ids) {
  const response = await fetch(location.pathname, { headers: { Accept: "text/html" } });
  if (!response.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const id of ids) {
    const replacement = fresh.getElementById(id);
    if (replacement) document.getElementById(id)?.replaceWith(document.adoptNode(replacement));
  }
}
