// Runs before the first paint, so that nobody who chose the dark sees a flash of the light.
const chosen = localStorage.getItem("theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
