// Keeps "3 min ago" true between two refreshes.
(function () {
  "use strict";
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

  function relative(seconds) {
    const length = Math.abs(seconds);
    if (length < 5) return "just now";
    const [size, unit] = UNITS.find(([limit]) => length >= limit);
    const count = Math.floor(length / size);
    return seconds > 0 ? `${count} ${unit} ago` : `in ${count} ${unit}`;
  }

  function update() {
    if (document.hidden) return;
    for (const element of document.querySelectorAll("time.since")) {
      const text = relative(Math.round((Date.now() - Date.parse(element.dateTime)) / 1000));
      if (element.textContent !== text) element.textContent = text;
    }
  }

  setInterval(update, 5000);
  document.addEventListener("visibilitychange", update);
})();
