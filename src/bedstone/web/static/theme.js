// Light or dark, as chosen before; runs before the page is drawn, so that it does not flash.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // The browser stores nothing: the page follows the system.
}
