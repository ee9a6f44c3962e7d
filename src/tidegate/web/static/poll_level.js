// How exact a poll is: the slider over its settings, and what each setting means.

import { element, fill, number } from "./elements.js";

const at = (id) => document.getElementById(id);
const points = (share) => number(100 * share, 2);
let settings = [];

const valueOf = (setting) => setting.epsilon ?? setting.random;
const sameValue = (value, other) => value === other || Number(value) === Number(other);

function showSetting(setting, draft) {
  at("slider").setAttribute("aria-valuetext", setting.margin === null ? setting.problem : `plus or minus ${points(setting.margin)} points`);
  at("margin").textContent = setting.margin === null ? setting.problem : `± ${points(setting.margin)} points`;
  at("error").textContent = setting.margin === null ? "" : `in the least exact question (95%); expected error ${points(setting.error)} points`;
  const limit = setting.loss === null ? "There is no limit" : `One person reveals at most epsilon ${number(setting.loss, 3)}`;
  at("loss").textContent = draft.privacy === "random" ? `${setting.random} of all answers are random. ${limit}.` : `${limit}.`;
  at("sentences").replaceChildren(...setting.sentences.map((sentence) => element("p", {}, sentence)));
}

function showErrors(value) {
  const texts = Object.fromEntries(value.reads[0].questions.map(({ question, text }) => [question, text]));
  const rows = value.questions.map((question) => [texts[question.question], question.operator, question.margin === null ? "unknown" : `± ${points(question.margin)}${question.kind === "number" ? "% of the range" : " points"}`]);
  fill(at("errors"), ["question", "operator", "error of a share or mean, 95%"], rows);
  at("accept").hidden = !value.questions.some((question) => question.too_large);
}

function showAsk(value, draft) {
  const each = value.ask === null ? "Every person answers all questions." : `Each person answers ${value.ask} of ${value.units}, drawn at random by their device.`;
  const why = draft.ask === "best" && value.units > 1 ? " The privacy limit is divided among fewer questions, which is worth more than the answers that are lost." : "";
  at("ask-says").textContent = value.ask === null ? each : each + why;
}

/** The most private setting whose error is small enough; null if there is none. */
const wished = (target) => settings.find(({ margin }) => margin !== null && 100 * margin <= target) ?? null;

/** Show a draft of the service. Return whether another setting was chosen for the wished error. */
export function showLevel(value, draft) {
  settings = value?.settings ?? [];
  at("level").hidden = !settings.length;
  at("target-says").textContent = "";
  if (!value) { at("accept").hidden = !draft.accept_error; at("errors").replaceChildren(); at("ask-says").textContent = ""; return false; }
  showErrors(value);
  showAsk(value, draft);
  if (!settings.length) return false;
  const chosen = Math.max(0, settings.findIndex((setting) => sameValue(valueOf(setting), draft[draft.privacy])));
  at("slider").max = settings.length - 1;
  at("slider").value = chosen;
  showSetting(settings[chosen], draft);
  return draft.target === "" ? false : aim(Number(draft.target), settings[chosen], draft);
}

function aim(target, now, draft) {
  const best = target > 0 ? wished(target) : null;
  at("target-says").textContent = best ? `The most private setting with an error of at most ± ${number(target)} points is chosen.` : `No setting has an error of at most ± ${number(target)} points. Ask more people, or fewer questions.`;
  if (!best || best === now) return false;
  draft[draft.privacy] = valueOf(best);
  return true;
}

/** The slider moved: its setting goes into the draft, and its meaning is shown before the service answers. */
export function moveSlider(draft) {
  const setting = settings[Number(at("slider").value)];
  if (!setting) return;
  draft[draft.privacy] = valueOf(setting);
  draft.target = "";
  at("target").value = "";
  at("target-says").textContent = "";
  showSetting(setting, draft);
}
