// Forms with times, for people whose times are in the zone of their browser: only here is it known.
// Without this script the form is in UTC, and says so.
(function () {
  "use strict";
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!here) return;

  // "2026-11-20T17:30" of UTC, as it is typed here.
  function local(text) {
    const moment = new Date(`${text}Z`);
    if (Number.isNaN(moment.getTime())) return text;
    const parts = new Intl.DateTimeFormat("sv-SE", {
      timeZone: here, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit",
    }).format(moment);
    return parts.replace(" ", "T");
  }

  for (const form of document.querySelectorAll("form[data-browser-zone]")) {
    const zone = form.elements.zone;
    if (zone.value === "UTC") {
      for (const input of form.querySelectorAll("input[type=datetime-local]")) {
        if (input.value) input.value = local(input.value);
      }
      zone.value = here;
    }
    for (const name of form.querySelectorAll("[data-zone-name]")) name.textContent = zone.value;
  }
})();
