// Before the first paint: the colours that were chosen here.
try {
  document.documentElement.dataset.theme = localStorage.getItem("placewire.theme") || "auto";
} catch {
  // No storage allowed: as the system says.
}
