// Keeps the states of a graph's nodes: reads one byte for each once, then only what has changed.
// Tells the drawing by the event "pilotage:states": detail.codes, and detail.changed (null: all).
// A DAG that has grown is not drawn any further: a line says so, and how it is drawn anew.
// Who misses a change is told it again: states are told, not steps, so doing so does no harm.
(function () {
  "use strict";
  const EVERY_MS = 5000;
  const panel = document.getElementById("graph");
  if (!panel) return;

  const base = `${panel.dataset.page}graph/`;
  let codes = null;
  let version = "";
  let hasGrown = false;

  function noteGrowth() {
    hasGrown = true;
    const line = document.getElementById("graph-grown");
    if (line) line.hidden = false;
  }

  function isPaused() {
    const button = document.getElementById("live-pause");
    return document.hidden || (button && button.getAttribute("aria-pressed") === "true");
  }

  function tell(changed) {
    document.dispatchEvent(new CustomEvent("pilotage:states", { detail: { codes, changed } }));
  }

  async function readAll() {
    const answer = await fetch(`${base}states`, { credentials: "same-origin" });
    if (!answer.ok) return;
    version = answer.headers.get("X-Graph-Version");
    const read = new Uint8Array(await answer.arrayBuffer());
    if (codes && read.length !== codes.length) {
      noteGrowth();
      return;
    }
    codes = read;
    tell(null);
  }

  async function readChanges() {
    const answer = await fetch(`${base}changes?since=${encodeURIComponent(version)}`, {
      credentials: "same-origin",
    });
    if (!answer.ok) return;
    const told = await answer.json();
    if (told.nodes === null) {
      await readAll();
      return;
    }
    version = told.version;
    if (Object.values(told.nodes).some((nodes) => nodes.some((node) => node >= codes.length))) {
      noteGrowth();
      return;
    }
    const changed = [];
    for (const [code, nodes] of Object.entries(told.nodes)) {
      for (const node of nodes) {
        if (codes[node] === Number(code)) continue;
        codes[node] = Number(code);
        changed.push(node);
      }
    }
    if (changed.length) tell(changed);
  }

  async function ask() {
    try {
      if (!codes) await readAll();
      else if (!isPaused()) await readChanges();
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // The server is away: ask again later.
    }
    if (!hasGrown) setTimeout(ask, EVERY_MS);
  }

  // A drawing that came later asks to be told what is known.
  document.addEventListener("pilotage:scene", () => { if (codes) tell(null); });
  document.addEventListener("DOMContentLoaded", ask);
})();
