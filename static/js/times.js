// Times of the page in the zone that the user wants, and "3 min ago" kept true between two refreshes.
// The server writes UTC or a named zone; the browser's own zone is known only here.
(function () {
  "use strict";
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const wanted = document.documentElement.dataset.zone || "UTC";
  const zone = wanted === "browser" ? undefined : wanted;
  const SHAPE = { hour12: false, hourCycle: "h23", timeZone: zone };
  const clockShape = new Intl.DateTimeFormat("en-GB", {
    ...SHAPE, hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
  });
  const dayShape = new Intl.DateTimeFormat("sv-SE", { timeZone: zone });

  // "17:30:05 CET"
  function clock(date) {
    return clockShape.format(date);
  }

  // "2026-11-20 17:30:05" and "CET"
  function parts(date) {
    const [time, ...name] = clock(date).split(" ");
    return [`${dayShape.format(date)} ${time}`, name.join(" ")];
  }

  function relative(seconds) {
    const length = Math.abs(seconds);
    if (length < 5) return "just now";
    const [size, unit] = UNITS.find(([limit]) => length >= limit);
    const count = Math.floor(length / size);
    return seconds > 0 ? `${count} ${unit} ago` : `in ${count} ${unit}`;
  }

  function update() {
    if (document.hidden) return;
    for (const element of document.querySelectorAll("time.since, time.at")) {
      const text = relative(Math.round((Date.now() - Date.parse(element.dateTime)) / 1000));
      if (element.classList.contains("at")) element.title = text;
      else if (element.textContent !== text) element.textContent = text;
    }
  }

  function localise(region) {
    if (wanted !== "browser") return;
    for (const element of region.querySelectorAll("time.since, time.at")) {
      const [moment, name] = parts(new Date(element.dateTime));
      if (element.classList.contains("since")) element.title = `${moment} ${name}`;
      else {
        element.firstChild.data = `${moment} `;
        element.querySelector(".zone").textContent = name;
      }
    }
  }

  window.pilotageTimes = { clock, zone: wanted };
  localise(document);
  document.addEventListener("htmx:afterSwap", (event) => localise(event.target));
  setInterval(update, 5000);
  document.addEventListener("visibilitychange", update);
})();
