// Confirmation of a large charge: the dialog repeats the price, the remaining budget, and how many more would fit.

import { number, shortUnit } from "./elements.js";

const SHARE = 0.1; // fraction of the remaining budget; larger charges need confirmation

/** Resolve to whether to spend: small charges need no confirmation. `goods` names what is bought: [one, several]. */
export function confirmed(cost, left, [one, several], unit = "epsilon") {
  if (cost <= SHARE * left) return Promise.resolve(true);
  const dialog = document.getElementById("confirm");
  const part = (name) => dialog.querySelector(`[data-part="${name}"]`);
  const more = Math.floor((left - cost) / cost + 1e-9);
  part("cost").textContent = `This costs ${shortUnit(unit)} ${number(cost)}.`;
  part("left").textContent = `${number(left)} is remaining; ${number(left - cost)} would remain afterwards.`;
  part("more").textContent = more ? `${more.toLocaleString("en")} more ${more === 1 ? one : several} of this size would fit.` : `No more ${several} of this size would fit.`;
  return new Promise((decide) => {
    let yes = false;
    part("yes").onclick = () => { yes = true; dialog.close(); };
    part("no").onclick = () => dialog.close();
    dialog.addEventListener("close", () => decide(yes), { once: true });
    dialog.showModal();
  });
}
