// Sends the large files of a form before the form, in pieces that go on where they stopped: after a
// lost connection by itself, and after the page was loaded anew when the same file is chosen again,
// since the server finds an upload by the file's SHA-256. What the server has already is not sent.
// Without this script the form is sent with its files, as any other.
(function () {
  "use strict";
  const box = document.getElementById("uploads");
  const form = box && box.closest("form");
  if (!form || !window.Worker) return;
  const { at, hasher, mostBytes } = box.dataset, MIB = 1024 * 1024;
  // Larger files go by uploads of their own; others go with the form, if they are not too much.
  const LARGE_BYTES = 8 * MIB, MOST_TOGETHER_BYTES = 128 * MIB, MOST_UPLOADS = 500;
  // The server keeps a piece once it has all of it: over a bad line smaller ones go.
  const PIECE_BYTES = 8 * MIB, LEAST_PIECE_BYTES = MIB / 2;
  const FIRST_PAUSE_S = 1, LONGEST_PAUSE_S = 30, MOST_BEGINNINGS = 3;
  const STALL_MS = 60000, END_MS = 600000, READ_MS = 30000;
  const AGAIN = new Set([0, 408, 429, 502, 503, 504]);
  const list = box.querySelector("ul"), row = box.querySelector("template"), told = box.querySelector("[role=status]");
  const digests = new WeakMap();
  let sent = null, isReady = false, stop = null;

  class Refused extends Error {}
  class Stopped extends Error {}

  const show = (item) => (list.scrollTop = item.offsetTop - list.offsetTop);
  const nameOf = (file) => file.webkitRelativePath || file.name;

  function largeFiles() {
    const all = [...form.querySelectorAll("input[type=file]")].flatMap((field) =>
      [...field.files].map((file) => ({ part: field.name, file, isLarge: "resumes" in field.dataset })),
    );
    let left = all.reduce((sum, each) => sum + each.file.size, 0);
    const chosen = [];
    for (const each of all.filter(({ isLarge }) => isLarge).sort((a, b) => b.file.size - a.file.size)) {
      if (!each.file.size || chosen.length === MOST_UPLOADS) break;
      if (each.file.size <= LARGE_BYTES && left <= MOST_TOGETHER_BYTES) break;
      chosen.push(each);
      left -= each.file.size;
    }
    return chosen;
  }

  function sizeWords(bytes) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    const step = Math.min(bytes ? Math.floor(Math.log2(bytes) / 10) : 0, units.length - 1);
    const amount = bytes / 1024 ** step;
    return `${amount.toFixed(step && amount < 100 ? 1 : 0)} ${units[step]}`;
  }

  // One line of the list: how far a file is, and why it is no further.
  class Line {
    constructor({ file }) {
      this.file = file;
      const item = row.content.cloneNode(true).querySelector("li");
      this.item = item;
      this.words = item.querySelector(".upload-words");
      this.bar = item.querySelector("progress");
      item.querySelector(".upload-name").textContent = nameOf(file);
      this.bar.setAttribute("aria-label", nameOf(file));
      this.show("waits", 0);
      list.append(item);
    }

    show(words, bytes) {
      this.item.classList.remove("is-bad");
      this.words.textContent = `${words} · ${sizeWords(this.file.size)}`;
      if (bytes !== undefined) this.bar.value = this.file.size ? bytes / this.file.size : 1;
    }

    sending(bytes) {
      this.show(`${Math.floor((100 * bytes) / this.file.size)} % sent`, bytes);
    }

    refuse(reason) {
      this.item.classList.add("is-bad");
      this.words.textContent = reason;
    }
  }

  // An answer of any status; 0 where none came.
  function ask(method, url, { json, piece, headers = {}, onSent } = {}) {
    return new Promise((resolve, reject) => {
      const call = new XMLHttpRequest();
      let timer;
      const watch = (ms) => {
        clearTimeout(timer);
        timer = setTimeout(() => call.abort(), ms);
      };
      call.open(method, url);
      call.setRequestHeader("Accept", "application/json");
      call.setRequestHeader("X-CSRFToken", form.elements.csrfmiddlewaretoken.value);
      if (json) call.setRequestHeader("Content-Type", "application/json");
      for (const [name, value] of Object.entries(headers)) call.setRequestHeader(name, value);
      call.upload.onprogress = (event) => {
        watch(STALL_MS);
        if (onSent) onSent(event.loaded);
      };
      // The last piece is answered when all of the file was checked.
      call.upload.onload = () => watch(END_MS);
      call.onloadend = () => {
        clearTimeout(timer);
        stop.signal.removeEventListener("abort", giveUp);
        if (stop.signal.aborted) reject(new Stopped());
        else resolve({ status: call.status, document: parsed(call), header: (name) => call.getResponseHeader(name) || "" });
      };
      const giveUp = () => call.abort();
      stop.signal.addEventListener("abort", giveUp);
      watch(piece ? STALL_MS : READ_MS);
      call.send(json ? JSON.stringify(json) : piece || null);
    });
  }

  function parsed(call) {
    try {
      return JSON.parse(call.responseText);
    } catch {
      return {};
    }
  }

  function good({ status, document: { detail } }) {
    if (status >= 200 && status < 300) return;
    if (status === 401) throw new Refused("Your login has ended: load this page again, log in and choose the file again. It goes on from here.");
    throw new Refused(detail || `The server answered with error ${status}.`);
  }

  // Until the time is over, or the network is back.
  function pause(seconds) {
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        window.removeEventListener("online", end);
        stop.signal.removeEventListener("abort", end);
        if (stop.signal.aborted) reject(new Stopped());
        else resolve();
      };
      const timer = setTimeout(end, 1000 * seconds);
      window.addEventListener("online", end);
      stop.signal.addEventListener("abort", end);
    });
  }

  async function waitFor(line, answer, tries) {
    const usual = Math.min(FIRST_PAUSE_S * 2 ** tries, LONGEST_PAUSE_S) * (0.8 + 0.4 * Math.random());
    const seconds = Math.max(usual, Number(answer.header("Retry-After")) || 0);
    const why = answer.status ? "The server is busy" : "No connection";
    line.show(`${why}: it goes on in ${Math.ceil(seconds)} s`);
    await pause(seconds);
  }

  async function patiently(line, ...request) {
    for (let tries = 0; ; tries++) {
      const answer = await ask(...request);
      if (!AGAIN.has(answer.status)) return answer;
      await waitFor(line, answer, tries);
    }
  }

  function digestOf(line) {
    const { file } = line;
    if (digests.has(file)) return Promise.resolve(digests.get(file));
    const worker = new Worker(hasher);
    return new Promise((resolve, reject) => {
      const broken = () => reject(new Refused("It cannot be read: choose it again."));
      worker.onerror = broken;
      stop.signal.addEventListener("abort", () => reject(new Stopped()));
      worker.onmessage = ({ data: { read, digest, fault } }) => {
        if (fault) broken();
        else if (digest) resolve(digest);
        else line.show(`is read: ${Math.floor((100 * read) / file.size)} %`, 0);
      };
      worker.postMessage(file);
    })
      .then((digest) => (digests.set(file, digest), digest))
      .finally(() => worker.terminate());
  }

  // The upload of this content that is furthest, or a new one.
  async function begun(line, sha256) {
    const found = await patiently(line, "GET", `${at}?sha256=${sha256}`);
    good(found);
    const same = found.document.results.filter((each) => each.size_bytes === line.file.size);
    same.sort((a, b) => b.is_complete - a.is_complete || b.offset - a.offset);
    if (same.length) return same[0];
    const json = { sha256, size_bytes: line.file.size };
    const answer = await patiently(line, "POST", at, { json, headers: { "Idempotency-Key": key() } });
    good(answer);
    return answer.document;
  }

  const key = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

  async function uploaded(line) {
    show(line.item);
    const sha256 = await digestOf(line);
    let now = await begun(line, sha256), pieceBytes = PIECE_BYTES, tries = 0, beginnings = 1;
    const again = () => {
      if (++beginnings > MOST_BEGINNINGS) throw new Refused("Its upload is cancelled again and again.");
      return begun(line, sha256);
    };
    while (!now.is_complete) {
      const { offset } = now;
      line.sending(offset);
      const answer = await ask("PATCH", `${at}${now.id}/`, {
        piece: line.file.slice(offset, offset + pieceBytes, "application/partial-upload"),
        headers: { "Upload-Offset": String(offset) },
        onSent: (bytes) => line.sending(Math.min(offset + bytes, line.file.size)),
      });
      if (answer.status === 200) {
        now = answer.document;
        [pieceBytes, tries] = [Math.min(2 * pieceBytes, PIECE_BYTES), 0];
      } else if (answer.document.expected_offset !== undefined && answer.document.expected_offset !== offset) {
        // It is sent from elsewhere too, or an answer was lost.
        now = { ...now, offset: answer.document.expected_offset };
      } else if (answer.status === 404) {
        now = await again();
      } else if (AGAIN.has(answer.status)) {
        if (!(await isReadable(line.file))) throw new Refused("It changed on your disk after you chose it: choose it again.");
        pieceBytes = Math.max(pieceBytes / 2, LEAST_PIECE_BYTES);
        await waitFor(line, answer, tries++);
        const there = await patiently(line, "GET", `${at}${now.id}/`);
        if (there.status !== 404) good(there);
        now = there.status === 404 ? await again() : there.document;
      } else good(answer);
    }
    line.show("is there", line.file.size);
    return now.id;
  }

  const isReadable = (file) => file.slice(0, 1).arrayBuffer().then(() => true, () => false);

  async function sendAll(chosen) {
    stop = new AbortController();
    list.replaceChildren();
    box.scrollIntoView({ block: "nearest" });
    const lines = chosen.map((each) => new Line(each)), parts = {};
    let isRefused = false;
    told.textContent = "Large files are sent first.";
    for (const [place, { part, file }] of chosen.entries()) {
      try {
        if (part === "archive" && file.size > Number(mostBytes)) {
          throw new Refused(`An archive may have ${sizeWords(Number(mostBytes))}: send the folder instead.`);
        }
        (parts[part] ||= {})[nameOf(file)] = await uploaded(lines[place]);
      } catch (error) {
        if (error instanceof Stopped) throw error;
        isRefused = true;
        lines[place].refuse(error instanceof Refused ? error.message : String(error));
      }
    }
    if (!isRefused) return parts;
    show(list.querySelector(".is-bad"));
    throw new Refused("Nothing was submitted: files were refused, see why at their names.");
  }

  function lock(isLocked) {
    for (const button of form.querySelectorAll("button[type=submit]")) button.disabled = isLocked;
    box.querySelector("button").hidden = !isLocked;
  }

  async function sendThenSubmit(chosen, submitter) {
    lock(true);
    try {
      const parts = await sendAll(chosen);
      sent = { parts, files: new Set(chosen.map(({ file }) => file)), submitter };
      told.textContent = "All large files are there.";
    } catch (error) {
      told.textContent = error instanceof Stopped ? "Stopped. What was sent is kept for a day: the same button goes on from there." : error.message;
      return;
    } finally {
      lock(false);
    }
    isReady = true;
    form.requestSubmit(submitter);
    isReady = false;
  }

  document.addEventListener("submit", (event) => {
    if (event.target !== form || isReady) return;
    sent = null;
    const chosen = largeFiles();
    box.hidden = !chosen.length;
    if (box.hidden) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    sendThenSubmit(chosen, event.submitter);
  }, true);

  // The form goes with what names the uploads, in place of the files.
  form.addEventListener("formdata", ({ formData }) => {
    if (!sent) return;
    for (const part of Object.keys(sent.parts)) {
      formData.delete(part);
      for (const file of form.elements[part].files) if (!sent.files.has(file)) formData.append(part, file, nameOf(file));
    }
    formData.set("uploads", JSON.stringify(sent.parts));
    if (sent.submitter && sent.submitter.name) formData.set(sent.submitter.name, sent.submitter.value);
  });
  box.querySelector("button").addEventListener("click", () => stop.abort());
})();
