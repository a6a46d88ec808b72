// Refreshes the region #live of a page: polls while the tab is visible, keeps scroll positions,
// focus, opened details, ticked boxes and what was typed, leaves the page alone while text is
// selected or something is pressed, and says when the data are old. Without this script the page is
// simply as old as its last load.
(function () {
  "use strict";
  const MESSAGES_MS = 6000;
  const region = document.getElementById("live");
  if (!region) return;

  const stamp = document.getElementById("live-stamp");
  const button = document.getElementById("live-pause");
  const alarm = document.getElementById("live-alarm");
  let everyMs = Number(region.dataset.every) * 1000;
  let etag = "";
  let updated = new Date();
  let isPaused = false;
  let kept = null;
  let seen = seenState();

  function seenState() {
    const mark = region.querySelector("[data-seen]");
    return mark ? mark.dataset.seen : "";
  }

  // What a page said of the last action holds for the state in which that left the object; it stays
  // long enough to be read.
  function forgetMessages() {
    if (seenState() === seen) return;
    seen = seenState();
    setTimeout(() => {
      for (const message of document.querySelectorAll("main > .flash")) message.remove();
    }, Math.max(0, MESSAGES_MS - performance.now()));
  }

  function clock(date) {
    return window.pilotageTimes.clock(date);
  }

  function showState(isStale) {
    document.body.classList.toggle("is-stale", isStale);
    stamp.textContent = isPaused ? `Paused, as of ${clock(updated)}` : `Updated ${clock(updated)}`;
    const words = isStale ? `No answer from the server: this is the state of ${clock(updated)}.` : "";
    if (alarm.textContent !== words) alarm.textContent = words;
  }

  // A click is lost if what was pressed is exchanged before it is released.
  let isPressed = false;
  window.addEventListener("pointerdown", (event) => { isPressed = region.contains(event.target); });
  for (const released of ["pointerup", "pointercancel"]) {
    window.addEventListener(released, () => { isPressed = false; });
  }

  function isInUse() {
    const selection = window.getSelection();
    const isRead = selection && !selection.isCollapsed && region.contains(selection.anchorNode);
    return isPressed || Boolean(isRead);
  }

  function ask() {
    if (isPaused || document.hidden || isInUse()) return;
    htmx.trigger(region, "pilotage:refresh");
  }

  function remember() {
    kept = {
      open: [...region.querySelectorAll("details[id]")].map((box) => [box.id, box.open]),
      ticked: [...region.querySelectorAll("input[type=checkbox][id]:checked")].map((box) => box.id),
      typed: [...region.querySelectorAll("input[id]:not([type=checkbox], [type=hidden])")]
        .filter((field) => field.value !== field.defaultValue)
        .map((field) => [field.id, field.value]),
      scrolled: [...region.querySelectorAll("[data-keep-scroll][id]")].map((box) => [
        box.id, box.scrollLeft, box.scrollTop,
      ]),
    };
  }

  function restore() {
    for (const [id, isOpen] of kept.open) {
      const box = document.getElementById(id);
      if (box) box.open = isOpen;
    }
    for (const id of kept.ticked) {
      const box = document.getElementById(id);
      if (box) box.checked = true;
    }
    for (const [id, value] of kept.typed) {
      const field = document.getElementById(id);
      if (field) field.value = value;
    }
    for (const [id, left, top] of kept.scrolled) {
      const box = document.getElementById(id);
      if (box) box.scrollTo(left, top);
    }
  }

  region.addEventListener("htmx:configRequest", (event) => {
    if (event.target === region && etag) event.detail.headers["If-None-Match"] = etag;
  });
  region.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target !== region || !event.detail.shouldSwap) return;
    if (isInUse()) event.detail.shouldSwap = false;
    else etag = event.detail.xhr.getResponseHeader("ETag") || "";
    everyMs = Number(event.detail.xhr.getResponseHeader("X-Refresh-Every")) * 1000 || everyMs;
    remember();
  });
  region.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target !== region) return;
    if (kept) restore();
    forgetMessages();
  });
  // Buttons that steer follow the state, but never from under somebody's hands.
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const box = event.detail.target;
    if (!box.querySelector("details[open]") && !box.contains(document.activeElement)) return;
    event.detail.shouldSwap = false;
    etag = ""; // the next answer brings them again, although nothing has changed
  });
  region.addEventListener("htmx:afterRequest", (event) => {
    if (event.target !== region) return;
    const isFresh = event.detail.successful || event.detail.xhr.status === 304;
    if (isFresh) updated = new Date(event.detail.xhr.getResponseHeader("Date") || Date.now());
    showState(!isFresh);
  });
  // A screen has no such button: nobody stands before it.
  button?.addEventListener("click", () => {
    isPaused = !isPaused;
    button.setAttribute("aria-pressed", String(isPaused));
    showState(document.body.classList.contains("is-stale"));
    ask();
  });
  document.addEventListener("visibilitychange", ask);
  (function askAgain() {
    setTimeout(() => { ask(); askAgain(); }, everyMs);
  })();
  showState(false);
})();
