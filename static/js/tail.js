// Shows logs from their end, once; after that the reader decides what is shown.
(function () {
  "use strict";
  for (const log of document.querySelectorAll("[data-tail]")) {
    log.scrollTop = log.scrollHeight;
  }
})();
