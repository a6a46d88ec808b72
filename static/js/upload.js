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
  // What was found in the files before says nothing about those that are sent now.
  form.addEventListener("htmx:beforeRequest", () => findings.replaceChildren());
  form.addEventListener("htmx:timeout", () => tell("No answer from the server. Send it again: it is stored once."));
  form.addEventListener("htmx:sendError", async () => {
    const changed = await changedFiles();
    for (const field of changed) field.value = "";
    for (const field of changed) field.dispatchEvent(new Event("change"));
    const names = changed.map((field) => form.querySelector(`label[for=${field.id}]`).textContent.trim());
    if (names.length === 0) tell("No answer from the server. Send it again: it is stored once.");
    else tell(`Nothing was sent: files changed on your disk after you chose them. Choose again: ${names.join(", ")}.`);
  });

  // A browser does not send a file that has changed since it was chosen, and cannot read it anew.
  async function changedFiles() {
    const found = [];
    for (const field of form.querySelectorAll("input[type=file]")) {
      for (const file of field.files) {
        const isReadable = await file.slice(0, 1).arrayBuffer().then(() => true, () => false);
        if (!isReadable && !found.includes(field)) found.push(field);
      }
    }
    return found;
  }
  for (const told of form.querySelectorAll("[data-chosen]")) watch(told);
})();
