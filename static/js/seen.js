// Forms say from what they were made. When the page around them is refreshed, those that nobody has
// open follow; who is about to send one is told of a change by the server instead.
(function () {
  "use strict";
  document.addEventListener("htmx:afterSwap", (event) => {
    const told = event.target.id === "live" && event.target.querySelector("[data-seen]");
    if (!told) return;
    for (const input of document.querySelectorAll("details:not([open]) > form > input[name=seen]")) {
      input.value = told.dataset.seen;
    }
  });
})();
