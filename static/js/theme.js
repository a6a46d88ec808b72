// Light or dark: the system's choice unless the user has made one. Runs before the first paint.
(function () {
  "use strict";
  const KEY = "pilotage-theme";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function choice() {
    try {
      return localStorage.getItem(KEY) || "auto";
    } catch {
      return "auto"; // storage is switched off
    }
  }

  function apply() {
    const chosen = choice();
    const theme = chosen === "auto" ? (dark.matches ? "dark" : "light") : chosen;
    if (document.documentElement.dataset.bsTheme === theme) return;
    document.documentElement.dataset.bsTheme = theme;
    document.dispatchEvent(new CustomEvent("pilotage:theme"));
  }

  function show(buttons) {
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(button.dataset.theme === choice()));
    }
  }

  // Parts that only work with scripts are shown, and folded away, from the first paint on.
  document.documentElement.classList.add("has-script");
  apply();
  dark.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    const box = document.getElementById("theme-switch");
    if (!box) return;
    const buttons = box.querySelectorAll("button");
    box.hidden = false;
    show(buttons);
    box.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      try {
        localStorage.setItem(KEY, button.dataset.theme);
      } catch {
        return;
      }
      apply();
      show(buttons);
    });
  });
})();
