// Opens and closes the menu on narrow screens; without this script it is always open.
(function () {
  "use strict";
  const toggle = document.getElementById("rail-toggle");
  if (!toggle) return;
  const rail = toggle.closest(".rail");

  function set(isOpen) {
    toggle.setAttribute("aria-expanded", String(isOpen));
    rail.classList.toggle("is-open", isOpen);
  }

  toggle.addEventListener("click", () => set(!rail.classList.contains("is-open")));
  rail.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !rail.classList.contains("is-open")) return;
    set(false);
    toggle.focus();
  });
})();
