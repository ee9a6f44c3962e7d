// A synthesis at work: its stage in words, how far it is, how long it has taken and may take. It is asked about every
// two seconds while somebody looks, and never again once it has ended.

import { number } from "./elements.js";
import { quietly, tell } from "./talk.js";

const EVERY = 2000;
const ENDED = ["done", "failed"];
const PATIENCE = 30; // times without an answer, after which the visitor must ask
const panel = document.getElementById("running");
const part = (name) => panel.querySelector(`[data-part="${name}"]`);
let pace = null; // when this stage was first seen, and how far it was then
let watched = "";

/** Follow a job to its end; then the lists of the page are read anew. */
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
  else if (failures + 1 >= PATIENCE) return part("time").textContent = "No answer for a minute. The work goes on without this page: load it again later.";
  else part("time").textContent = `No answer ${failures + 1} of ${PATIENCE} times: ${error.what} It is asked again in 2 s.`;
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
  part("time").textContent = `${ENDED.includes(job.state) ? "It took " : ""}${seconds(job.seconds)}${ENDED.includes(job.state) ? "." : " so far"}${running ? remaining(stage, done, of, job.seconds) : ""}`;
  part("resumed").hidden = !job.resumed;
}

/** How long this stage may still take, by its pace since it was first seen. */
function remaining(stage, done, of, now) {
  if (!pace || pace.stage !== stage) pace = { stage, done, now };
  const made = done - pace.done;
  if (made <= 0 || now <= pace.now) return "; no estimate of this stage yet";
  return `; about ${seconds(((now - pace.now) / made) * (of - done))} left of this stage`;
}

function seconds(given) {
  const whole = Math.max(1, Math.round(given));
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

async function end(job, afterwards) {
  watched = "";
  if (job.state === "failed") {
    part("title").textContent = "It was not made";
    part("stage").textContent = "It failed; nothing is given out. Why, and what to do:";
    tell(job.problem);
  } else {
    part("title").textContent = "Done";
    part("stage").textContent = "Done: the tables are below, to download.";
  }
  await refresh(["account", "earlier", "code"]);
  afterwards();
}

/** Read parts of this page anew, as the service renders them. */
export async function refresh(ids) {
  const response = await fetch(location.pathname, { headers: { Accept: "text/html" } });
  if (!response.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const id of ids) {
    const found = fresh.getElementById(id);
    if (found) document.getElementById(id)?.replaceWith(document.adoptNode(found));
  }
}
