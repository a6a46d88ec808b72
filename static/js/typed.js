// Keeps what was typed into a form that was sent after the login had ended: once the same user has
// logged in again, it stands in the form as before. Passwords and files are not kept. Without this
// script the form is empty again, and the login page says that nothing was carried out.
(function () {
  "use strict";
  const KEY = "pilotage-typed";
  const user = document.documentElement.dataset.user;

  function read() {
    try {
      return JSON.parse(sessionStorage.getItem(KEY));
    } catch {
      return null;
    }
  }

  function write(kept) {
    try {
      sessionStorage.setItem(KEY, JSON.stringify(kept));
    } catch {
      // Storage is full or switched off: then nothing is kept.
    }
  }

  function fieldsOf(form) {
    return [...form.elements].filter(
      (field) => field.name && !["hidden", "password", "file", "submit", "button"].includes(field.type),
    );
  }

  const isTick = (field) => field.type === "checkbox" || field.type === "radio";

  // Forms of one page with the same address are told apart by their place among each other.
  function formsTo(action) {
    return [...document.querySelectorAll("form[method=post]")].filter((form) => form.action === action);
  }

  document.addEventListener(
    "submit",
    ({ target: form }) => {
      if (!user || form.method !== "post") return;
      const fields = fieldsOf(form).map((field) => [field.name, field.value, isTick(field) && field.checked]);
      const place = formsTo(form.action).indexOf(form);
      write({ user, page: location.pathname, action: form.action, place, fields });
    },
    true,
  );

  function restore(kept) {
    const form = formsTo(kept.action)[kept.place];
    if (!form) return;
    const fields = fieldsOf(form);
    for (const [name, value, isTicked] of kept.fields) {
      const field = fields.find((each) => each.name === name && (!isTick(each) || each.value === value));
      if (!field) continue;
      if (isTick(field)) field.checked = isTicked;
      else field.value = value;
      if (value !== "" && field.value !== field.defaultValue) open(field);
    }
    open(form);
    const hasFiles = form.querySelector("input[type=file]") ? " Choose the files again." : "";
    const note = document.createElement("div");
    note.className = "notice tone-warn";
    note.id = "typed-kept";
    note.setAttribute("role", "status");
    note.textContent = `Your login had ended, and nothing was sent: here is what you had typed.${hasFiles}`;
    form.prepend(note);
    note.scrollIntoView({ block: "nearest" });
  }

  function open(element) {
    for (let box = element.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
  }

  const kept = read();
  if (!kept) return;
  if (!user) write({ ...kept, isAfterLogin: true });
  else {
    sessionStorage.removeItem(KEY);
    if (kept.isAfterLogin && kept.user === user && kept.page === location.pathname) restore(kept);
  }
})();
