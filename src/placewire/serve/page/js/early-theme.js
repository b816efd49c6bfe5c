// Applies the chosen theme before the first paint.
try {
  document.documentElement.dataset.theme = localStorage.getItem("placewire.theme") || "auto";
} catch {
  // Storage is not allowed: use the system theme.
}
