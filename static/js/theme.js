// Light or dark: the system's choice unless the user has made one. Runs before the first paint.
(function () {
  "use strict";
  const KEY = "pilotage-theme";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  const root = document.documentElement;

  // Who is logged in has a choice on the server; the browser keeps one for the pages before that.
  function choice() {
    if (root.dataset.theme) return root.dataset.theme;
    try {
      return localStorage.getItem(KEY) || "auto";
    } catch {
      return "auto"; // storage is switched off
    }
  }

  function keep(theme) {
    if (root.dataset.theme) {
      root.dataset.theme = theme;
      const token = document.querySelector(".rail input[name=csrfmiddlewaretoken]");
      fetch("/preferences/", {
        method: "POST",
        body: new URLSearchParams({ theme }),
        headers: { "X-CSRFToken": token ? token.value : "", "HX-Request": "true" },
      }).catch(() => {}); // the page keeps the choice, the next one may not
    }
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // storage is switched off
    }
  }

  function apply() {
    const chosen = choice();
    const theme = chosen === "auto" ? (dark.matches ? "dark" : "light") : chosen;
    if (root.dataset.bsTheme === theme) return;
    root.dataset.bsTheme = theme;
    document.dispatchEvent(new CustomEvent("pilotage:theme"));
  }

  function show(buttons) {
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(button.dataset.theme === choice()));
    }
  }

  // Parts that only work with scripts are shown, and folded away, from the first paint on.
  root.classList.add("has-script");
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
      keep(button.dataset.theme);
      apply();
      show(buttons);
    });
  });
})();
