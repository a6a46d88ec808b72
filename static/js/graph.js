// The graph of boxes: zoom, dragging, the arcs of a box, groups that open in place, and states that
// change. Without this script it is a drawing that can be scrolled, with links.
(function () {
  "use strict";
  const panel = document.getElementById("graph");
  if (!panel) return;

  const LEAST = 0.15;
  const MOST = 3;
  const STEP = 1.25;
  const LEGIBLE = 0.75;
  const THINNEST = 0.015;
  const ENDED = new Set(["done", "failed", "futile", "skipped"]);
  const looks = JSON.parse(document.getElementById("graph-looks").textContent);
  const stacked = JSON.parse(document.getElementById("graph-stacked").textContent);
  const told = document.getElementById("graph-told");
  const toldAtFirst = told.innerHTML;
  let scroll = null;
  let svg = null;
  let zoom = 1;
  let groups = new Map(); // from a group's box to its nodes
  let grabbed = null;

  function setUp() {
    scroll = document.getElementById("graph-scroll");
    svg = document.getElementById("graph-svg");
    if (!svg) return;
    groups = new Map();
    for (const box of svg.querySelectorAll("[data-members]")) groups.set(box, members(box));
    document.dispatchEvent(new CustomEvent("pilotage:scene"));
  }

  function members(box) {
    const nodes = [];
    for (const part of box.dataset.members.split(",")) {
      const [first, last] = part.split("-").map(Number);
      for (let node = first; node <= (last ?? first); node += 1) nodes.push(node);
    }
    return nodes;
  }

  // Zoom
  function setZoom(wanted, x, y) {
    const before = zoom;
    zoom = Math.min(Math.max(wanted, LEAST), MOST);
    svg.setAttribute("width", Number(svg.dataset.width) * zoom);
    svg.setAttribute("height", Number(svg.dataset.height) * zoom);
    const factor = zoom / before;
    scroll.scrollLeft = (scroll.scrollLeft + x) * factor - x;
    scroll.scrollTop = (scroll.scrollTop + y) * factor - y;
  }

  function fit() {
    const wide = scroll.clientWidth / Number(svg.dataset.width);
    const high = scroll.clientHeight / Number(svg.dataset.height);
    setZoom(Math.min(wide, high, 1), 0, 0);
  }

  function change(how) {
    const x = scroll.clientWidth / 2;
    const y = scroll.clientHeight / 2;
    if (how === "in") setZoom(zoom * STEP, x, y);
    else if (how === "out") setZoom(zoom / STEP, x, y);
    else if (how === "full") setZoom(1, x, y);
    else fit();
  }

  function center(box) {
    const frame = box.querySelector(".frame").getBBox();
    const x = (frame.x + frame.width / 2) * zoom;
    const y = (frame.y + frame.height / 2) * zoom;
    const left = Math.max((scroll.clientWidth - svg.width.baseVal.value) / 2, 0);
    scroll.scrollTo(x + left - scroll.clientWidth / 2, y - scroll.clientHeight / 2);
  }

  // The arcs of a box
  function point(box) {
    if (!svg) return;
    for (const each of svg.querySelectorAll(".near")) each.classList.remove("near");
    svg.classList.toggle("is-pointing", Boolean(box));
    if (!box) return;
    const number = box.dataset.number;
    const near = new Set([number]);
    for (const wire of svg.querySelectorAll(`[data-from="${number}"], [data-to="${number}"]`)) {
      wire.classList.add("near");
      near.add(wire.dataset.from).add(wire.dataset.to);
    }
    for (const each of near) svg.querySelector(`#box-${each}`)?.classList.add("near");
    say(box, near.size - 1);
  }

  function say(box, count) {
    const words = document.createElement("span");
    words.textContent = `${box.getAttribute("aria-label")}; ${count} neighbour${count === 1 ? "" : "s"}. `;
    told.replaceChildren(words);
    if (!box.dataset.id) return;
    const way = document.createElement("a");
    way.href = `${panel.dataset.page}?tab=graph&node=${box.dataset.id}#graph`;
    way.textContent = "Only what is around it";
    told.append(way);
  }

  // Opening and closing groups in place
  async function open(way) {
    const address = way.getAttribute("href");
    const answer = await fetch(address, { credentials: "same-origin" });
    if (!answer.ok) {
      window.location.assign(address);
      return;
    }
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = found.getElementById("graph");
    if (!next) {
      window.location.assign(address);
      return;
    }
    const left = scroll.scrollLeft;
    const top = scroll.scrollTop;
    for (const part of [".graph-tools", "#graph-body"]) {
      panel.querySelector(part).replaceWith(document.adoptNode(next.querySelector(part)));
    }
    history.pushState(null, "", address);
    const before = zoom;
    zoom = 1;
    begin();
    setZoom(before, 0, 0);
    scroll.scrollTo(left, top);
    scroll.focus({ preventScroll: true });
  }

  // States
  function paintNode(box, code) {
    const look = looks[code];
    for (const each of looks) box.classList.remove(`tone-${each.tone}`);
    box.classList.add(`tone-${look.tone}`);
    const use = box.querySelector("use");
    use.setAttribute("href", `${use.getAttribute("href").split("#")[0]}#${look.shape}`);
    const words = `${box.dataset.name}: ${look.word}${box.dataset.more}`;
    box.setAttribute("aria-label", words);
    box.querySelector("title").textContent = words;
  }

  function paintGroup(box, nodes, codes) {
    const counts = new Array(looks.length).fill(0);
    for (const node of nodes) counts[codes[node]] += 1;
    const wide = Number(box.querySelector(".bar-ground").getAttribute("width"));
    const sizes = counts.map((count) => count && Math.max(count / nodes.length, THINNEST) * wide);
    const surplus = sizes.reduce((sum, size) => sum + size, 0) - wide;
    sizes[sizes.indexOf(Math.max(...sizes))] -= Math.max(surplus, 0);
    let x = 0;
    const words = [];
    for (const code of stacked) {
      const part = box.querySelector(`[data-state="${looks[code].state}"]`);
      const size = sizes[code];
      part.setAttribute("x", x);
      part.setAttribute("width", size);
      x += size;
      if (words.length === 0) words.push(`${counts[code]} of ${nodes.length} ${looks[code].word}`);
      else if (counts[code]) words.push(`${counts[code]} ${looks[code].word}`);
    }
    box.setAttribute("aria-label", `Open ${box.dataset.name}: ${words.join(", ")}`);
    box.querySelector("title").textContent = `${box.dataset.name}: ${words.join(", ")}`;
  }

  // Arcs that wait for what becomes of their conditions, by the boxes that they begin at.
  function undecided() {
    const wires = svg.querySelectorAll("path.when:not(.holds, .ruled-out)");
    return new Set([...wires].map((wire) => wire.dataset.from));
  }

  // What came of conditions is known to the server: it draws the arcs anew.
  async function readWires() {
    const answer = await fetch(window.location.href, { credentials: "same-origin" });
    if (!answer.ok || !svg) return;
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    const isSame = found.querySelectorAll("#graph-svg .box").length === svg.querySelectorAll(".box").length;
    if (isSame) svg.querySelector(".wires").replaceWith(document.adoptNode(found.querySelector("#graph-svg .wires")));
  }

  document.addEventListener("pilotage:states", (event) => {
    if (!svg) return;
    const { codes, changed } = event.detail;
    const anew = changed && new Set(changed);
    const waiting = undecided();
    let isDecided = false;
    for (const box of svg.querySelectorAll("[data-node]")) {
      const node = Number(box.dataset.node);
      if (!anew || anew.has(node)) paintNode(box, codes[node]);
      isDecided ||= Boolean(anew?.has(node)) && waiting.has(box.dataset.number) && ENDED.has(looks[codes[node]].state);
    }
    if (isDecided) readWires();
    for (const [box, nodes] of groups) {
      if (!anew || nodes.some((node) => anew.has(node))) paintGroup(box, nodes, codes);
    }
  });

  // What a person does
  panel.addEventListener("click", (event) => {
    const button = event.target.closest("[data-zoom]");
    if (button) change(button.dataset.zoom);
    const way = event.target.closest("[data-scene]");
    if (!way || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(way);
  });
  panel.addEventListener("focusin", (event) => {
    const box = event.target.closest(".box");
    if (box) point(box);
  });
  panel.addEventListener("mouseover", (event) => {
    const box = event.target.closest(".box");
    if (box && !grabbed) point(box);
  });
  panel.addEventListener("mouseleave", () => {
    point(null);
    told.innerHTML = toldAtFirst;
  });
  panel.addEventListener("keydown", (event) => {
    if (event.target.closest("input") || event.ctrlKey || event.metaKey || !svg) return;
    if (event.key === "+" || event.key === "-") {
      change(event.key === "+" ? "in" : "out");
      event.preventDefault();
    }
  });
  panel.addEventListener("wheel", (event) => {
    if (!svg || !event.ctrlKey || !event.target.closest("#graph-scroll")) return;
    event.preventDefault();
    const frame = scroll.getBoundingClientRect();
    const factor = event.deltaY < 0 ? STEP : 1 / STEP;
    setZoom(zoom * factor, event.clientX - frame.left, event.clientY - frame.top);
  }, { passive: false });
  panel.addEventListener("pointerdown", (event) => {
    if (event.button || event.pointerType !== "mouse" || event.target.closest(".box")) return;
    if (!event.target.closest("#graph-svg")) return;
    grabbed = { x: event.clientX, y: event.clientY, left: scroll.scrollLeft, top: scroll.scrollTop };
    scroll.classList.add("is-grabbed");
  });
  window.addEventListener("pointermove", (event) => {
    if (!grabbed) return;
    scroll.scrollTo(grabbed.left + grabbed.x - event.clientX, grabbed.top + grabbed.y - event.clientY);
  });
  window.addEventListener("pointerup", () => {
    grabbed = null;
    scroll?.classList.remove("is-grabbed");
  });
  window.addEventListener("popstate", () => window.location.reload());

  function begin() {
    setUp();
    if (svg) document.getElementById("graph-zoom").hidden = false;
  }

  begin();
  if (svg) {
    const found = svg.querySelector(".found");
    if (found) center(found);
    else if (Number(svg.dataset.width) * LEGIBLE <= scroll.clientWidth) fit();
  }
})();
