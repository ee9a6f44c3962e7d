// Before the page is rendered: apply the user's last choice of theme and explanations.
{
  const kept = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const root = document.documentElement;
  if (kept("theme")) root.dataset.theme = kept("theme");
  root.dataset.explain = kept("explain") ?? "on";
}
