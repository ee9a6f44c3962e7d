// Repeated work while the page is visible, and long work with a display of the elapsed seconds.

const LEAST = 2; // seconds
const PATIENCE = 4; // slow work is repeated less often: the pause is this many times its duration

/** Do the work every `seconds` while the page is visible, until it returns false. Return a function that does it now. */
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

/** Show a text and the elapsed seconds until the work is done. */
export async function timed(target, text, work, buttons = []) {
  const start = performance.now();
  const say = () => { target.textContent = `${text}: ${Math.round((performance.now() - start) / 1000)} s`; };
  const clock = setInterval(say, 1000);
  for (const button of buttons) button.disabled = true;
  target.hidden = false;
  say();
  try { return await work(); } finally {
    clearInterval(clock);
    target.textContent = "";
    for (const button of buttons) button.disabled = false;
  }
}
