// Says which files are chosen, and brings the faults into view. Without this script the form is sent
// as any other, and the page comes back with the faults.
(function () {
  "use strict";
  const form = document.getElementById("submit-form");
  if (!form) return;
  const field = form.querySelector('input[name="files"]');
  const chosen = form.querySelector("[data-chosen-files]");
  const findings = document.getElementById("findings");

  function list() {
    const names = [...field.files].map((file) => file.name).sort();
    const shown = names.slice(0, 12).join(", ");
    const rest = names.length > 12 ? ` and ${names.length - 12} more` : "";
    chosen.textContent = names.length ? `${names.length} chosen: ${shown}${rest}` : "";
    chosen.hidden = names.length === 0;
  }

  field.addEventListener("change", list);
  findings.addEventListener("htmx:afterSwap", () => {
    findings.focus({ preventScroll: true });
    findings.scrollIntoView({ block: "nearest" });
  });
  list();
})();
