// Follows a log: asks for what was added while its end is in view and the tab is visible. Whoever
// scrolls up reads in peace until they press Follow. Without this script the page is as old as its
// load, and its links lead everywhere.
(function () {
  "use strict";
  const MOST_LINES = 5000;
  const box = document.getElementById("log");
  const wrap = document.getElementById("log-wrap");
  if (!box) return;
  const state = document.getElementById("log-state");
  const button = document.getElementById("log-follow");
  const size = document.getElementById("log-size");
  const range = document.getElementById("log-range");
  const note = document.getElementById("log-note");
  const counted = document.getElementById("log-counted");
  let next = Number(box.dataset.next);
  let first = Number(box.dataset.first) || 0;
  let etag = box.dataset.etag;
  let isGrowing = box.dataset.isGrowing === "1";
  const isEnd = box.dataset.isEnd === "1";
  let isFollowing = isGrowing && isEnd;
  let isAsking = false;

  function atEnd() {
    return box.scrollHeight - box.scrollTop - box.clientHeight < 24;
  }

  function toEnd() {
    box.scrollTop = box.scrollHeight;
  }

  function clock() {
    return window.pilotageTimes.clock(new Date());
  }

  function tell(words) {
    if (state.textContent !== words) state.textContent = words;
  }

  function showState() {
    button.hidden = !isGrowing;
    button.textContent = isFollowing ? "Stop following" : "Follow";
    if (!isGrowing) tell("Ended");
    else tell(isFollowing ? "Following" : "Not following");
  }

  function sizeInWords(bytes) {
    if (bytes < 1024) return `${bytes} B`;
    const units = ["KiB", "MiB", "GiB", "TiB"];
    let value = bytes / 1024;
    let unit = 0;
    while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
    return `${value.toFixed(1)} ${units[unit]}`;
  }

  function trim() {
    let spare = box.children.length - MOST_LINES;
    for (; spare > 0; spare -= 1) box.firstElementChild.remove();
  }

  // The last line is sent again when it had no end: it takes the place of what is there of it.
  function add(html, from) {
    if (box.dataset.open === String(from)) box.lastElementChild.remove();
    box.insertAdjacentHTML("beforeend", html);
    trim();
  }

  // Lines behind what is not here have no numbers, but places.
  function showRange(bytes) {
    const lines = box.querySelectorAll(".line");
    if (!lines.length) return;
    const [one, other] = [lines[0], lines[lines.length - 1]];
    const place = new URL(one.firstElementChild.href).searchParams.get("at");
    if (other.id) range.textContent = `Lines ${one.id.slice(1)} to ${other.id.slice(1)}`;
    else if (one.id) range.textContent = `From line ${one.id.slice(1)} on`;
    else range.textContent = `Bytes ${place} to ${bytes}`;
  }

  function take(answer, html, from) {
    const header = (name) => answer.headers.get(name) || "";
    if (header("X-Log-Is-End") === "1") {
      box.replaceChildren();
      box.dataset.open = "";
    }
    if (html) {
      const empty = document.getElementById("log-empty");
      if (empty) empty.remove();
      box.hidden = false;
      add(html, from);
    }
    next = Number(header("X-Log-Next"));
    const bytes = Number(header("X-Log-Size"));
    box.dataset.open = next < bytes ? String(next) : "";
    if (size.dataset.bytes !== String(bytes)) {
      size.dataset.bytes = String(bytes);
      size.textContent = sizeInWords(bytes);
    }
    showRange(bytes);
    note.hidden = !header("X-Log-Note");
    if (note.lastElementChild.textContent !== header("X-Log-Note")) {
      note.lastElementChild.textContent = header("X-Log-Note");
    }
    const updated = document.querySelector("#log-updated time");
    if (updated && header("X-Log-Updated")) {
      updated.dateTime = header("X-Log-Updated");
    }
    etag = header("ETag");
    isGrowing = header("X-Log-Is-Growing") === "1";
    if (!isGrowing) isFollowing = false;
    if (isFollowing) toEnd();
  }

  async function ask() {
    if (isAsking || !isFollowing || document.hidden) return;
    isAsking = true;
    const from = next;
    try {
      const answer = await fetch(`?part=1&from=${from}`, {
        headers: { "If-None-Match": etag }, redirect: "manual", cache: "no-store",
      });
      if (answer.status === 200) take(answer, await answer.text(), from);
      else if (answer.status !== 304) throw new Error(String(answer.status));
      showState();
    } catch (error) {
      tell(`No answer from the server since ${clock()}`);
    } finally {
      isAsking = false;
    }
  }

  // Numbers that the server had no time to count when the page was made.
  async function number() {
    if (first || !counted) return;
    const answer = await fetch(`?part=1&from=${box.dataset.start}&count=1`, { cache: "no-store" });
    if (!answer.ok) return;
    const known = Number(answer.headers.get("X-Log-First"));
    if (!known) {
      counted.textContent = `${answer.headers.get("X-Log-Counted")} %`;
      setTimeout(number, 300);
      return;
    }
    first = known;
    counted.textContent = "100 %";
    box.querySelectorAll(".line").forEach((line, place) => {
      line.id = `L${known + place}`;
      const link = line.firstElementChild;
      link.href = `?line=${known + place}`;
      link.textContent = String(known + place);
    });
  }

  box.addEventListener("scroll", () => {
    if (!isFollowing || atEnd()) return;
    isFollowing = false;
    showState();
  });
  button.addEventListener("click", () => {
    if (!isEnd) {
      window.location.assign("?#log");
      return;
    }
    isFollowing = !isFollowing;
    if (isFollowing) toEnd();
    showState();
    ask();
  });
  wrap.addEventListener("click", (event) => {
    event.preventDefault();
    const isLong = box.classList.toggle("is-long");
    wrap.textContent = isLong ? "Wrap lines" : "Do not wrap lines";
    const address = new URL(window.location.href);
    if (isLong) address.searchParams.set("wrap", "0");
    else address.searchParams.delete("wrap");
    window.history.replaceState(null, "", address);
  });
  // A range of lines: a click on the first number, and one with Shift on the last.
  box.addEventListener("click", (event) => {
    const link = event.target.closest(".no");
    const begun = new URLSearchParams(window.location.search).get("line");
    const chosen = link && new URL(link.href).searchParams.get("line");
    if (!event.shiftKey || !begun || !chosen) return;
    event.preventDefault();
    window.location.assign(`?line=${parseInt(begun, 10)}-${chosen}`);
  });
  document.addEventListener("visibilitychange", ask);

  if (next < Number(size.dataset.bytes)) box.dataset.open = String(next);
  const marked = box.querySelector(".is-marked");
  if (marked) box.scrollTop = marked.offsetTop - box.clientHeight / 2;
  else if (isEnd) toEnd();
  if (isGrowing) showState();
  setInterval(ask, Number(box.dataset.every) * 1000);
  number();
})();
