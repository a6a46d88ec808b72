// Says which files are chosen, and brings the faults into view. Without this script the form is sent
// as any other, and the page comes back with the faults.
(function () {
  "use strict";
  const form = document.getElementById("submit-form");
  if (!form) return;
  const findings = document.getElementById("findings");

  function watch(told) {
    const field = document.getElementById(told.dataset.chosen);
    function list() {
      const names = [...field.files].map((file) => inFolder(file)).sort();
      const shown = names.slice(0, 12).join(", ");
      const rest = names.length > 12 ? ` and ${names.length - 12} more` : "";
      told.textContent = names.length ? `${names.length} chosen: ${shown}${rest}` : "";
      told.hidden = names.length === 0;
    }
    field.addEventListener("change", list);
    list();
  }

  // As the server will know it: the path inside of the folder that was chosen.
  function inFolder(file) {
    const path = file.webkitRelativePath || "";
    return path.slice(path.indexOf("/") + 1) || file.name;
  }

  findings.addEventListener("htmx:afterSwap", () => {
    findings.focus({ preventScroll: true });
    findings.scrollIntoView({ block: "nearest" });
  });
  // Whatever else is answered is a page of its own, or nothing: the form stays, and says what it was.
  function tell(words) {
    const note = document.createElement("div");
    note.className = "notice tone-bad";
    note.setAttribute("role", "alert");
    note.textContent = words;
    findings.replaceChildren(note);
    findings.scrollIntoView({ block: "nearest" });
  }
  form.addEventListener("htmx:responseError", (event) => {
    const answer = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html");
    const parts = answer.querySelectorAll(".refusal :is(h1, h1 + p)");
    const words = [...parts].map((part) => part.textContent.trim()).join(": ");
    tell(words || `The server answered with error ${event.detail.xhr.status}.`);
  });
  for (const failure of ["htmx:sendError", "htmx:timeout"]) {
    form.addEventListener(failure, () => tell("No answer from the server. Send it again: it is stored once."));
  }
  for (const told of form.querySelectorAll("[data-chosen]")) watch(told);
})();
