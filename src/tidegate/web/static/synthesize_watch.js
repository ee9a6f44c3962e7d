// A running synthesis: its stage, progress, elapsed and remaining time. The page polls every two seconds while it is
// visible, and stops once the synthesis has ended.

import { number } from "./elements.js";
import { quietly, tell } from "./api.js";

const EVERY = 2000;
const ENDED = ["done", "failed"];
const PATIENCE = 30; // failed polls, after which the page stops polling
const panel = document.getElementById("running");
const part = (name) => panel.querySelector(`[data-part="${name}"]`);
let pace = null; // when this stage was first seen, and its progress then
let watched = "";

/** Follow a job to its end; then update the lists of the page. */
export function watch(base, job, afterwards) {
  panel.hidden = false;
  watched = job.id;
  pace = null;
  show(job);
  setTimeout(() => look(base, job.id, afterwards, 0), EVERY);
}

async function look(base, id, afterwards, failures) {
  if (watched !== id) return;
  if (document.hidden) {
    document.addEventListener("visibilitychange", () => look(base, id, afterwards, failures), { once: true });
    return;
  }
  const { value, error } = await quietly("GET", `${base}/${id}`);
  if (value) show(value);
  else if (failures + 1 >= PATIENCE) return part("time").textContent = "The service has not responded for a minute. The synthesis continues without this page. Reload the page later.";
  else part("time").textContent = `No response (attempt ${failures + 1} of ${PATIENCE}): ${error.what} Trying again in 2 s.`;
  if (value && ENDED.includes(value.state)) return end(value, afterwards);
  setTimeout(() => look(base, id, afterwards, value ? 0 : failures + 1), EVERY);
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
  if (job.state === "failed") {
    part("title").textContent = "The synthesis failed";
    part("stage").textContent = "No tables were created. See the message for the reason.";
    tell(job.problem);
  } else {
    part("title").textContent = "Done";
    part("stage").textContent = "Download the tables below.";
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
