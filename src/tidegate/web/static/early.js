// Before anything is drawn: what the visitor chose last time.
{
  const kept = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const root = document.documentElement;
  if (kept("theme")) root.dataset.theme = kept("theme");
  root.dataset.explain = kept("explain") ?? "on";
}
