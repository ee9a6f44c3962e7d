// Before the page is rendered: apply the user's last choice of theme and explanations.
{
  const stored = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const root = document.documentElement;
  if (stored("theme")) root.dataset.theme = stored("theme");
  root.dataset.explain = stored("explain") ?? "on";
}
