// The menu of narrow screens, and the forms that unfold from buttons: they close as menus do.
// Without this script the menu is always open, and a form closes by its button.
(function () {
  "use strict";
  const MENUS = ".steer details, .menus [id^=menu-]";
  const OPEN = ".steer details[open], .menus [id^=menu-][open]";
  const toggle = document.getElementById("rail-toggle");
  const rail = toggle && toggle.closest(".rail");

  function setMenu(isOpen) {
    toggle.setAttribute("aria-expanded", String(isOpen));
    rail.classList.toggle("is-open", isOpen);
  }

  function closeForms(except) {
    for (const box of document.querySelectorAll(OPEN)) {
      if (box !== except) box.open = false;
    }
  }

  if (toggle) {
    toggle.addEventListener("click", () => setMenu(!rail.classList.contains("is-open")));
  }
  document.addEventListener("click", (event) => closeForms(event.target.closest(MENUS)));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const form = document.querySelector(OPEN);
    if (form) {
      closeForms(null);
      form.querySelector("summary").focus();
    } else if (rail && rail.classList.contains("is-open")) {
      setMenu(false);
      toggle.focus();
    }
  });
})();
