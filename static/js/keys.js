// `/` goes to the search over everything; `?` and the link in the menu show which keys there are.
// Without this script the link leads to the page of help, where they stand too.
(function () {
  "use strict";
  const dialog = document.getElementById("keys-dialog");
  const link = document.getElementById("show-keys");
  const search = document.getElementById("search-everything");
  if (!dialog || !dialog.showModal) return;
  const hasKeys = document.documentElement.dataset.shortcuts !== "off";

  function show(event) {
    event.preventDefault();
    if (!dialog.open) dialog.showModal();
  }

  if (link) link.addEventListener("click", show);
  document.addEventListener("keydown", (event) => {
    if (!hasKeys || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    if (event.key === "?") show(event);
    if (event.key !== "/" || !search) return;
    event.preventDefault();
    const rail = search.closest(".rail");
    if (rail && !search.offsetParent) document.getElementById("rail-toggle").click();
    search.focus();
    search.select();
  });
})();
