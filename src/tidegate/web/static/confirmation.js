// A question before a large expense: the dialog repeats the price, what is left and how often that would fit.

import { number } from "./elements.js";

const SHARE = 0.1; // of what is left: more than this is confirmed

/** Whether to spend: at once where it is little, else as the visitor decides. `goods` names what more would fit. */
export function confirmed(cost, left, goods) {
  if (cost <= SHARE * left) return Promise.resolve(true);
  const dialog = document.getElementById("confirm");
  const part = (name) => dialog.querySelector(`[data-part="${name}"]`);
  const more = Math.floor((left - cost) / cost + 1e-9);
  part("cost").textContent = `This costs epsilon ${number(cost)}.`;
  part("left").textContent = `${number(left)} is left; ${number(left - cost)} would remain.`;
  part("more").textContent = more ? `${more.toLocaleString("en")} more ${goods} of this size would fit.` : `No more ${goods} of this size would fit.`;
  return new Promise((decide) => {
    let yes = false;
    part("yes").onclick = () => { yes = true; dialog.close(); };
    part("no").onclick = () => dialog.close();
    dialog.addEventListener("close", () => decide(yes), { once: true });
    dialog.showModal();
  });
}
