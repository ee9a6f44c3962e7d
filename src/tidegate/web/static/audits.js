// Audits: start one and follow its progress.

import { watch, refresh } from "./job_watch.js";
import { key, quietly, tell, view } from "./api.js";
import { fieldError } from "./field_errors.js";

const page = view();
const base = `/v1/data/${page.name}/audits`;
const start = document.getElementById("start");
const seconds = document.getElementById("seconds");
let sent = null; // the key of a request whose response was lost: it is sent again

async function begin() {
  const wrong = !(Number(seconds.value) > 0 && Number(seconds.value) <= 3600);
  fieldError(seconds, wrong ? "Enter a number above 0, at most 3600." : null);
  if (wrong) return;
  sent ??= key();
  start.disabled = true;
  const { value, error } = await quietly("POST", base, { seconds: Number(seconds.value) }, { "Idempotency-Key": sent });
  tell(error);
  if (error?.code !== "unreachable") sent = null;
  if (value) {
    watch(base, value, ended);
    refresh(["earlier"]);
  } else start.disabled = false;
}

function ended() {
  if (start) start.disabled = false;
}

start?.addEventListener("click", begin);
const open = page.audits.find((job) => job.state === "waiting" || job.state === "running");
if (open) {
  if (start) start.disabled = true;
  watch(base, open, ended);
}
