// Choosing many rows of a list: counts what is ticked, ticks a page at once, and lets no single row
// be ticked beside all. Without this script the boxes and buttons work the same, uncounted.
(function () {
  "use strict";
  const region = document.getElementById("live");

  function boxes() {
    return [...region.querySelectorAll("input.pick")];
  }

  function show() {
    const all = document.getElementById("pick-all");
    const count = document.getElementById("bulk-count");
    if (!all || !count) return;
    const rows = boxes();
    for (const box of rows) {
      box.disabled = all.checked;
      box.closest("tr").classList.toggle("is-picked", all.checked || box.checked);
    }
    const ticked = rows.filter((box) => box.checked).length;
    const page = document.getElementById("pick-page");
    if (page) {
      page.disabled = all.checked;
      page.checked = ticked === rows.length;
      page.indeterminate = ticked > 0 && ticked < rows.length;
    }
    const words = all.checked ? "all, on every page" : ticked ? `${ticked} chosen` : "none chosen";
    if (count.textContent !== words) count.textContent = words;
    for (const button of document.querySelectorAll(".bulk-actions button")) {
      button.disabled = !all.checked && !ticked;
    }
  }

  // A box that ticks the whole page stands in the head of the table, where a place is kept for it; it
  // needs this script.
  function addPageBox() {
    const place = document.getElementById("pick-page-place");
    if (!place || !boxes().length) return;
    const box = document.createElement("input");
    box.type = "checkbox";
    box.id = "pick-page";
    box.className = "form-check-input pick-page";
    box.setAttribute("aria-label", "Select all rows of this page");
    place.replaceWith(box);
  }

  region.addEventListener("change", (event) => {
    if (event.target.id === "pick-page") {
      for (const box of boxes()) box.checked = event.target.checked;
    }
    if (event.target.matches("input[type=checkbox]")) show();
  });
  region.addEventListener("htmx:afterSwap", () => { addPageBox(); show(); });
  // A way back in the browser's history brings the ticks along.
  window.addEventListener("pageshow", show);
  addPageBox();
  show();
})();
