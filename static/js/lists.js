// Lists: `f` goes to the search, `j` and `k` to the next and the previous line, and a form leaves
// empty fields out of the address. Without this script lists work the same, by links and Tab.
(function () {
  "use strict";
  const hasKeys = document.documentElement.dataset.shortcuts !== "off";

  function isTyping(target) {
    return target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");
  }

  function lineLinks() {
    return [...document.querySelectorAll("#live table.data tbody tr .main a")].filter(
      (link, place, all) => !place || link.closest("tr") !== all[place - 1].closest("tr"),
    );
  }

  function move(step) {
    const links = lineLinks();
    const here = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
    const next = links[here < 0 ? (step > 0 ? 0 : links.length - 1) : here + step];
    if (next) next.focus();
  }

  document.addEventListener("keydown", (event) => {
    if (!hasKeys || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (event.key === "f") {
      const search = document.querySelector("[data-search]");
      if (!search) return;
      event.preventDefault();
      search.focus();
      search.select();
    } else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
  });

  for (const form of document.querySelectorAll("form.list-search")) {
    form.addEventListener("submit", (event) => {
      const filled = [...new FormData(form)].filter(([, value]) => value !== "");
      event.preventDefault();
      const query = new URLSearchParams(filled).toString();
      location.assign(query ? `?${query}` : form.dataset.clear);
    });
  }
})();
