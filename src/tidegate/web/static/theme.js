// Before the page is rendered: apply the user's last choice of theme and explanations, and let forms wait for their scripts.
{
  const stored = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const root = document.documentElement;
  if (stored("theme")) root.dataset.theme = stored("theme");
  root.dataset.explain = stored("explain") ?? "on";

  // A form without a method is handled by a script of its page. If the user is faster, the browser would only load the page again.
  let early = null;
  const keep = (event) => {
    if (event.target.hasAttribute("method")) return;
    event.preventDefault();
    early = [event.target, event.submitter];
  };
  addEventListener("submit", keep, true);
  addEventListener("DOMContentLoaded", () => {
    removeEventListener("submit", keep, true);
    if (early) early[0].requestSubmit(early[1]);
  });
}
