// What goes on while somebody looks: work again and again, and work that takes a while, with the seconds it has taken.

const LEAST = 2; // seconds
const PATIENCE = 4; // work that takes long is done more rarely: it waits so many times as long as it took

/** Do the work every so many seconds while the page is seen; it ends when the work says false. Gives a way to do it now. */
export function live(seconds, work) {
  const least = Math.max(LEAST, seconds) * 1000;
  let timer = null, busy = false, over = false, took = 0;
  const later = () => {
    clearTimeout(timer);
    timer = over || document.hidden ? null : setTimeout(now, Math.max(least, PATIENCE * took));
  };
  async function now() {
    if (busy || over) return;
    busy = true;
    const start = performance.now();
    try { over = (await work()) === false; } finally { busy = false; took = performance.now() - start; later(); }
  }
  document.addEventListener("visibilitychange", () => { if (document.hidden) clearTimeout(timer); else now(); });
  later();
  return now;
}

/** Say what is done and for how many seconds already, until it is done. */
export async function timed(place, words, work, buttons = []) {
  const start = performance.now();
  const say = () => { place.textContent = `${words}: ${Math.round((performance.now() - start) / 1000)} s`; };
  const clock = setInterval(say, 1000);
  for (const button of buttons) button.disabled = true;
  place.hidden = false;
  say();
  try { return await work(); } finally {
    clearInterval(clock);
    place.textContent = "";
    for (const button of buttons) button.disabled = false;
  }
}
