// Draws the figures of the history, which the server makes: in the colours of the theme, on paper in
// light ones, with buttons that fold their lines, and anew each minute. The table under each chart
// has the same values for readers without this script.
(function () {
  "use strict";
  const REFRESH_MS = 60000;
  const AT_ONCE = 2;
  const MOST_POINTS = 1500;
  const STROKES = {
    solid: "", dash: "7 3", dot: "2 3", dashdot: "7 3 2 3", longdash: "11 3", longdashdot: "11 3 2 3",
  };
  const FIGURES = {
    circle: "M16 3a3 3 0 1 0 .01 0", square: "M13 3h6v6h-6z", diamond: "M16 2l4 4-4 4-4-4z",
    "triangle-up": "M16 2l4 7h-8z", "triangle-down": "M16 10l-4-7h8z", cross: "M15 2h2v3h3v2h-3v3h-2V7h-3V5h3z",
  };
  // What fits a page, in either direction of it.
  const PAPER = { autosize: false, width: 640, height: 260 };
  const PICTURE = { format: "png", width: 1100, height: 460, scale: 2 };
  const CONFIG = {
    displaylogo: false,
    responsive: true,
    scrollZoom: false,
    displayModeBar: false,
    doubleClick: false,
    showSendToCloud: false,
    plotlyServerURL: "",
  };
  let isPrinted = false;

  function template(box) {
    return box.pilotageData.templates[document.documentElement.dataset.bsTheme === "dark" ? "dark" : "light"];
  }

  function zone() {
    const chosen = document.documentElement.dataset.zone || "UTC";
    return chosen === "browser" ? Intl.DateTimeFormat().resolvedOptions().timeZone : chosen;
  }

  // The figure tells times in the reader's zone and without it.
  function moment(box, time) {
    return Date.parse(`${time.replace(" ", "T")}Z`) - 1000 * box.pilotageData.figure.layout.meta.offset_s;
  }

  function tracesOf(box) {
    return box.pilotageData.figure.data.map((trace) => ({ ...trace, visible: !box.hiddenLines.has(trace.legendgroup) }));
  }

  // Each line, with its colour: the template has those of all traces, in their order.
  function linesOf(box) {
    const styles = template(box).data.scatter;
    return box.pilotageData.figure.data
      .map((trace, at) => ({ ...trace, colour: styles[at].line?.color }))
      .filter((trace) => trace.name && trace.showlegend !== false);
  }

  function legendItem(box, trace) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.line = trace.legendgroup;
    button.setAttribute("aria-pressed", String(!box.hiddenLines.has(trace.legendgroup)));
    button.innerHTML = `<svg viewBox="0 0 32 12" width="32" height="12" aria-hidden="true"><path d="M0 6h32" fill="none" stroke="${trace.colour}" stroke-width="2" stroke-dasharray="${STROKES[trace.line.dash]}"/><path d="${FIGURES[trace.marker.symbol]}" fill="${trace.colour}"/></svg>`;
    button.append(trace.name);
    item.append(button);
    return item;
  }

  function drawLegend(box) {
    const list = box.querySelector("[data-chart-legend]");
    const focused = document.activeElement?.closest("[data-chart-legend]") === list && document.activeElement.dataset.line;
    list.replaceChildren(...linesOf(box).map((trace) => legendItem(box, trace)));
    if (focused) list.querySelector(`[data-line="${CSS.escape(focused)}"]`)?.focus();
  }

  function draw(box) {
    const { figure, on_page: onPage, summary } = box.pilotageData;
    const plot = box.querySelector("[data-chart-plot]");
    const told = box.querySelector("[data-chart-summary]");
    if (told.textContent !== summary) told.textContent = summary;
    box.querySelector("[data-chart-note]").textContent = `${figure.layout.title.subtitle.text}.`;
    drawLegend(box);
    const size = isPrinted ? PAPER : { autosize: true };
    // Plotly writes into a layout what the reader does.
    const layout = { ...structuredClone(figure.layout), ...onPage, ...size, template: template(box) };
    Plotly.react(plot, tracesOf(box), layout, CONFIG);
    if (box.isHeard) return;
    box.isHeard = true;
    plot.on("plotly_hover", (event) => tell(box, "hover", { x: moment(box, event.xvals[0]) }));
    plot.on("plotly_unhover", () => tell(box, "hover", { x: null }));
    plot.on("plotly_relayout", (change) => {
      const [from, to] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (from && to) tell(box, "range", { from: moment(box, from), to: moment(box, to) });
    });
    box.querySelector("[data-chart-png]").hidden = false;
  }

  function tell(box, what, detail) {
    box.dispatchEvent(new CustomEvent(`pilotage:chart-${what}`, { bubbles: true, detail }));
  }

  async function savePng(box) {
    const { layout } = box.pilotageData.figure;
    const link = document.createElement("a");
    const figure = { data: tracesOf(box), layout: { ...structuredClone(layout), template: template(box) } };
    link.href = await Plotly.toImage(figure, PICTURE);
    link.download = `${layout.meta.file}.png`;
    link.click();
  }

  async function load(box) {
    if (document.hidden && box.pilotageData) return;
    // About a point for each two pixels; not another number for each width, so that answers can be kept.
    const points = Math.min(Math.max(100, 50 * Math.ceil(box.clientWidth / 100)), MOST_POINTS);
    const address = `${box.dataset.chart}&points=${points}&zone=${encodeURIComponent(zone())}`;
    try {
      const answer = await fetch(address, { headers: { Accept: "application/json" } });
      if (!answer.ok || answer.redirected || !box.isConnected) return;
      box.pilotageData = await answer.json();
    } catch {
      return; // no answer: the page's stamp says that the data are old
    }
    const { data } = box.pilotageData.figure;
    box.hiddenLines ??= new Set(data.filter((trace) => trace.visible !== true).map((trace) => trace.legendgroup));
    draw(box);
  }

  function boxes() {
    return [...document.querySelectorAll("[data-chart]")];
  }

  // A few at once and in the order of the page, so that what is in view comes first.
  async function loadAll(waiting) {
    async function work() {
      for (let box = waiting.shift(); box; box = waiting.shift()) await load(box);
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }

  document.addEventListener("click", (event) => {
    const box = event.target.closest("[data-chart]");
    if (!box?.pilotageData) return;
    const button = event.target.closest("[data-line]");
    if (button) {
      const name = button.dataset.line;
      if (!box.hiddenLines.delete(name)) box.hiddenLines.add(name);
      draw(box);
    } else if (event.target.closest("[data-chart-png]")) savePng(box);
  });

  function drawAll() {
    boxes().filter((box) => box.pilotageData).forEach(draw);
  }

  document.addEventListener("pilotage:theme", drawAll);
  for (const [name, value] of [["beforeprint", true], ["afterprint", false]]) {
    window.addEventListener(name, () => {
      isPrinted = value;
      drawAll();
    });
  }
  document.addEventListener("htmx:afterSwap", () => loadAll(boxes().filter((box) => !box.pilotageData)));
  setInterval(() => loadAll(boxes()), REFRESH_MS);
  loadAll(boxes());
})();
