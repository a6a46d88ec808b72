// Asks now and then how many notices are unread, while the tab is visible. Without this script the
// number is that of the last load of the page.
(function () {
  "use strict";
  const EVERY_MS = 30000;

  function ask() {
    const bell = document.getElementById("bell");
    if (bell && !document.hidden && bell !== document.activeElement) htmx.trigger(bell, "pilotage:bell");
  }

  setInterval(ask, EVERY_MS);
  document.addEventListener("visibilitychange", ask);
})();
