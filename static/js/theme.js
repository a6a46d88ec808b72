// Light or dark: the system's choice unless the user has made one. Runs before the first paint.
(function () {
  "use strict";
  const KEY = "pilotage-theme";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  const root = document.documentElement;
  let clicked = "";

  // What the browser remembers: a choice, and what the server said when it was made.
  function remembered() {
    try {
      return (localStorage.getItem(KEY) || "").split("|");
    } catch {
      return [""]; // storage is switched off
    }
  }

  function remember(...parts) {
    try {
      localStorage.setItem(KEY, parts.join("|"));
    } catch {
      // storage is switched off
    }
  }

  // The server knows the choice of who is logged in, except for one that is still on its way there.
  function choice() {
    if (clicked) return clicked;
    const [mine, replaced] = remembered();
    const told = root.dataset.theme;
    if (!told) return mine || "auto";
    if (mine && replaced === told) return mine;
    if (mine !== told || replaced) remember(told);
    return told;
  }

  function keep(theme) {
    const told = root.dataset.theme;
    clicked = theme;
    remember(theme, ...(told && told !== theme ? [told] : []));
    if (!told) return;
    const token = document.querySelector(".rail input[name=csrfmiddlewaretoken]");
    fetch("/preferences/", {
      method: "POST",
      body: new URLSearchParams({ theme }),
      headers: { "X-CSRFToken": token ? token.value : "", "HX-Request": "true" },
      keepalive: true,
    }).catch(() => {}); // this browser remembers it, others do not
  }

  // Paper is white: charts are drawn for it while they are printed.
  let isPrinted = false;
  for (const [name, value] of [["beforeprint", true], ["afterprint", false]]) {
    window.addEventListener(name, () => {
      isPrinted = value;
      apply();
    });
  }

  function apply() {
    const chosen = choice();
    const theme = isPrinted ? "light" : chosen === "auto" ? (dark.matches ? "dark" : "light") : chosen;
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
