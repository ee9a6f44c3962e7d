// Upload a table: the file is sent as it is, with its progress, and the next step opens when it was read.

import { url } from "./address.js";
import { problemIn } from "./api.js";
import { fieldError } from "./field_errors.js";

const CSRF = document.querySelector('meta[name="csrf"]')?.content ?? "";
const byId = (id) => document.getElementById(id);
const megabytes = (bytes) => `${(bytes / 1024 ** 2).toFixed(1)} MB`;

export function prepareUpload() {
  const form = byId("upload");
  if (!form) return;
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const file = byId("file").files[0];
    const problem = !file ? "Choose a file." : file.size > Number(form.dataset.largest) ? `The file is larger than ${megabytes(form.dataset.largest)}. Put it into the data folder of the service.` : null;
    fieldError(byId("file"), problem);
    if (!problem) send(form, file);
  });
}

/** Send a file; fetch reports no progress of uploads. */
function send(form, file) {
  const request = new XMLHttpRequest();
  const query = new URLSearchParams({ name: file.name, encoding: byId("encoding").value });
  for (const option of document.querySelectorAll("#notation input")) query.set(option.id, option.checked);
  request.open("PUT", url(`${form.dataset.address}?${query}`));
  request.setRequestHeader("X-CSRF-Token", CSRF);
  request.setRequestHeader("Accept", "application/json");
  request.upload.addEventListener("progress", (event) => show(event.loaded, event.total));
  request.addEventListener("load", () => finish(form, request));
  request.addEventListener("error", () => stop("The service cannot be reached, or it refused the file. Try again."));
  byId("send").disabled = true;
  show(0, file.size);
  request.send(file);
}

function show(loaded, total) {
  byId("upload-progress").hidden = false;
  byId("bar").value = total ? loaded / total : 0;
  byId("bar-text").textContent = loaded < total ? `${megabytes(loaded)} of ${megabytes(total)} sent` : "Reading the column names and types …";
}

function finish(form, request) {
  if (request.status === 200) return location.assign(url(form.dataset.next));
  let content = {};
  try { content = JSON.parse(request.responseText); } catch { /* not JSON */ }
  const error = problemIn(content, request.status);
  return stop(`${error.what} ${error.do}`.trim());
}

function stop(text) {
  byId("upload-progress").hidden = true;
  byId("send").disabled = false;
  fieldError(byId("file"), text);
  byId("notation").open = true; // most refusals of a CSV file are about how it is written
  byId("file").focus();
}
