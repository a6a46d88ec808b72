// The graph of cells, one for each node of a large DAG: drawn on a canvas from compact arrays, to
// be zoomed, dragged, and walked through by keyboard. The table of nodes is its equivalent.
(function () {
  "use strict";
  const WITH_SHAPES = 13;
  const WITH_NAMES = 72;
  const MOST = 120;
  const STEP = 1.4;
  const panel = document.getElementById("graph");
  const canvas = document.getElementById("graph-canvas");
  if (!panel || !canvas) return;

  const base = `${panel.dataset.page}graph/`;
  const looks = JSON.parse(document.getElementById("graph-looks").textContent);
  const told = document.getElementById("graph-told");
  const pen = canvas.getContext("2d");
  const bitmap = document.createElement("canvas");
  const names = new Map();
  let cells = null;
  let codes = null;
  let colours = [];
  let shapes = []; // pictures of them in the colours of the theme
  let sprite = null;
  let view = { x: 0, y: 0, size: 1 };
  let chosen = { node: -1, parents: [], children: [], conditional: [], href: "" };
  let isDue = false;
  let grabbed = null;
  let asked = 0;

  const read = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Colours and shapes of the theme
  function readTheme() {
    colours = looks.map((look) => ({
      fill: read(`--${look.tone}-fill`), soft: read(`--${look.tone}-soft`), ink: read(`--${look.tone}`),
    }));
    shapes = looks.map((look, place) => shapeOf(look.shape, colours[place].ink));
    paintBitmap(null);
  }

  function shapeOf(name, colour) {
    const symbol = sprite && sprite.getElementById(name);
    if (!symbol) return null;
    const image = new Image();
    image.onload = draw;
    const inside = symbol.innerHTML.replaceAll("currentColor", colour);
    image.src = `data:image/svg+xml,${encodeURIComponent(
      `<svg xmlns="http://www.w3.org/2000/svg" width="32" height="32" viewBox="0 0 16 16">${inside}</svg>`,
    )}`;
    return image;
  }

  // One pixel for each node: drawn large or small it is the whole map.
  function paintBitmap(changed) {
    if (!cells || !codes) return;
    const to = bitmap.getContext("2d", { willReadFrequently: true });
    const isNew = !changed || bitmap.width !== cells.width;
    if (isNew) {
      bitmap.width = cells.width;
      bitmap.height = cells.rows;
    }
    const pixels = to.getImageData(0, 0, bitmap.width, bitmap.height);
    const words = new Uint32Array(pixels.data.buffer);
    const values = colours.map((each) => pixelOf(each.fill));
    const paint = (node) => {
      const [column, row] = cells.at(node);
      words[row * bitmap.width + column] = values[codes[node]];
    };
    if (isNew) for (let node = 0; node < cells.count; node += 1) paint(node);
    else changed.forEach(paint);
    to.putImageData(pixels, 0, 0);
    draw();
  }

  function pixelOf(colour) {
    const value = parseInt(colour.slice(1), 16);
    return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
  }

  // Drawing
  function draw() {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      if (cells && codes) paint();
    });
  }

  function paint() {
    const ratio = window.devicePixelRatio || 1;
    const wide = canvas.clientWidth;
    const high = canvas.clientHeight;
    if (canvas.width !== Math.round(wide * ratio) || canvas.height !== Math.round(high * ratio)) {
      canvas.width = Math.round(wide * ratio);
      canvas.height = Math.round(high * ratio);
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, wide, high);
    if (view.size < WITH_SHAPES) {
      pen.imageSmoothingEnabled = view.size < 1;
      pen.drawImage(bitmap, -view.x * view.size, -view.y * view.size, bitmap.width * view.size, bitmap.height * view.size);
    } else {
      paintCells(wide, high);
    }
    paintChosen();
  }

  function paintCells(wide, high) {
    const first = Math.max(Math.floor(view.x), 0);
    const last = Math.min(Math.ceil(view.x + wide / view.size), cells.width);
    const top = Math.max(Math.floor(view.y), 0);
    const bottom = Math.min(Math.ceil(view.y + high / view.size), cells.rows);
    const size = view.size - 1;
    const glyph = Math.min(size - 2, 20);
    const unnamed = [];
    pen.font = "10px sans-serif";
    pen.textAlign = "center";
    for (let column = first; column < last; column += 1) {
      for (let row = top; row < bottom; row += 1) {
        const node = cells.pick(column, row);
        if (node < 0) continue;
        const x = (column - view.x) * view.size;
        const y = (row - view.y) * view.size;
        const { soft, ink } = colours[codes[node]];
        pen.fillStyle = soft;
        pen.fillRect(x, y, size, size);
        const image = shapes[codes[node]];
        if (image?.complete) pen.drawImage(image, x + (size - glyph) / 2, y + (size - glyph) / 2, glyph, glyph);
        if (view.size < WITH_NAMES) continue;
        pen.fillStyle = ink;
        if (names.has(node)) pen.fillText(names.get(node), x + size / 2, y + size - 6, size - 4);
        else unnamed.push(node);
      }
    }
    if (unnamed.length) readNames(unnamed.slice(0, 400));
  }

  function paintChosen() {
    if (chosen.node < 0) return;
    const middle = (node) => {
      const [column, row] = cells.at(node);
      return [(column + 0.5 - view.x) * view.size, (row + 0.5 - view.y) * view.size];
    };
    const [x, y] = middle(chosen.node);
    pen.strokeStyle = read("--accent");
    pen.lineWidth = 1.25;
    for (const other of [...chosen.parents, ...chosen.children]) {
      pen.setLineDash(chosen.conditional.includes(other) ? [6, 4] : []);
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(...middle(other));
      pen.stroke();
    }
    pen.setLineDash([]);
    const size = Math.max(view.size, 9);
    pen.strokeStyle = read("--ink");
    pen.lineWidth = 2.5;
    pen.strokeRect(x - size / 2, y - size / 2, size, size);
  }

  // The view
  function fit() {
    const size = Math.min(canvas.clientWidth / cells.width, canvas.clientHeight / cells.rows) * 0.97;
    view = { size, x: (cells.width - canvas.clientWidth / size) / 2, y: (cells.rows - canvas.clientHeight / size) / 2 };
    draw();
  }

  function zoomTo(wanted, x, y) {
    const size = Math.min(Math.max(wanted, 0.05), MOST);
    view.x += x / view.size - x / size;
    view.y += y / view.size - y / size;
    view.size = size;
    draw();
  }

  function change(how) {
    const wanted = { in: view.size * STEP, out: view.size / STEP, full: 24 }[how];
    if (wanted) zoomTo(wanted, canvas.clientWidth / 2, canvas.clientHeight / 2);
    else fit();
  }

  function bringIntoView(node) {
    const [column, row] = cells.at(node);
    const wide = canvas.clientWidth / view.size;
    const high = canvas.clientHeight / view.size;
    if (column < view.x || column + 1 > view.x + wide) view.x = column - wide / 2;
    if (row < view.y || row + 1 > view.y + high) view.y = row - high / 2;
  }

  // What the server tells of some nodes
  async function get(path) {
    const answer = await fetch(base + path);
    return answer.ok ? answer.json() : null;
  }

  async function readNames(nodes) {
    for (const node of nodes) names.set(node, "");
    const found = await get(`names?at=${nodes.join(",")}`);
    for (const [node, name] of Object.entries(found?.names || {})) names.set(Number(node), name);
    draw();
  }

  async function choose(node) {
    if (node < 0) return;
    chosen = { node, parents: [], children: [], conditional: [], href: "" };
    bringIntoView(node);
    draw();
    const mine = (asked += 1);
    const found = await get(`nodes/${node}`);
    if (!found || mine !== asked) return;
    chosen = { node, ...found };
    tell(found);
    draw();
  }

  function tell(found) {
    const name = document.createElement("a");
    name.href = found.href;
    name.id = "graph-chosen";
    name.textContent = found.name;
    const around = document.createElement("a");
    around.href = found.near_href;
    around.textContent = "Only what is around it";
    const more = found.is_cut ? "more than that many of " : "";
    const join = found.join && `, ${found.join}`;
    const when = found.conditions.length ? `Dashed arcs have conditions: ${found.conditions.join("; ")}. ` : "";
    const words = `: ${looks[codes[chosen.node]].word}, level ${found.level}${join}, ${more}${found.parents.length} parents and ${found.children.length} children. ${found.reason} ${when}`;
    told.replaceChildren(name, words, around);
  }

  // What a person does
  function pointOf(event) {
    const frame = canvas.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  }

  canvas.addEventListener("pointerdown", (event) => {
    const [x, y] = pointOf(event);
    grabbed = { x, y, from: { ...view }, hasMoved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!grabbed) return;
    const [x, y] = pointOf(event);
    grabbed.hasMoved = grabbed.hasMoved || Math.hypot(x - grabbed.x, y - grabbed.y) > 4;
    if (!grabbed.hasMoved) return;
    view.x = grabbed.from.x - (x - grabbed.x) / view.size;
    view.y = grabbed.from.y - (y - grabbed.y) / view.size;
    draw();
  });
  canvas.addEventListener("pointerup", (event) => {
    const [x, y] = pointOf(event);
    if (grabbed && !grabbed.hasMoved) {
      choose(cells.pick(Math.floor(view.x + x / view.size), Math.floor(view.y + y / view.size)));
    }
    grabbed = null;
  });
  canvas.addEventListener("wheel", (event) => {
    // Until somebody has turned to the map, the wheel scrolls the page as elsewhere.
    if (!event.ctrlKey && document.activeElement !== canvas) return;
    event.preventDefault();
    zoomTo(view.size * (event.deltaY < 0 ? STEP : 1 / STEP), ...pointOf(event));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (!cells || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow")) choose(chosen.node < 0 ? cells.inOrder[0] : cells.next(chosen.node, event.key));
    else if ("+-0".includes(event.key)) change({ "+": "in", "-": "out" }[event.key]);
    else if (event.key === "Enter" && chosen.href) window.location.assign(chosen.href);
    else return;
    event.preventDefault();
  });
  document.getElementById("graph-zoom").addEventListener("click", (event) => {
    const button = event.target.closest("[data-zoom]");
    if (button) change(button.dataset.zoom);
  });
  document.addEventListener("pilotage:theme", readTheme);
  document.addEventListener("pilotage:states", (event) => {
    codes = event.detail.codes;
    paintBitmap(event.detail.changed);
  });

  async function begin() {
    const [places, drawn] = await Promise.all([
      fetch(`${base}places`), fetch(panel.dataset.shapes),
    ]);
    if (!places.ok) return;
    sprite = new DOMParser().parseFromString(await drawn.text(), "image/svg+xml");
    document.getElementById("graph-cells").hidden = false;
    document.getElementById("graph-zoom").hidden = false;
    cells = new window.PilotageCells(await places.arrayBuffer(), canvas.clientWidth / canvas.clientHeight);
    fit();
    readTheme();
    new ResizeObserver(draw).observe(canvas);
    document.dispatchEvent(new CustomEvent("pilotage:scene"));
    told.firstChild.textContent = "Click a cell or use the arrow keys to see a node; then the wheel, or +, shows shapes and names. ";
  }

  begin();
})();
