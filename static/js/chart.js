// Draws the history charts: a line for each series, behind an average a band up to the maximum.
// Colours come from the design tokens and follow the theme; dashes and markers tell lines apart
// without them. The table under each chart has the same figures for readers without this script.
(function () {
  "use strict";
  const REFRESH_MS = 60000;
  const AT_ONCE = 2;
  const MOST_POINTS = 1500;
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const STROKES = ["", "7 3", "2 3", "7 3 2 3", "11 3", "11 3 2 3"];
  // Times on the axis are written as on the pages: the day stands below the first hour of it.
  const TICKS = [
    { dtickrange: [null, 60000], value: "%H:%M:%S\n%Y-%m-%d" },
    { dtickrange: [60000, 86400000], value: "%H:%M\n%Y-%m-%d" },
    { dtickrange: [86400000, "M1"], value: "%-d %b\n%Y" },
    { dtickrange: ["M1", "M12"], value: "%b\n%Y" },
    { dtickrange: ["M12", null], value: "%Y" },
  ];
  // What fits a page, in either direction of it.
  const PAPER = { autosize: false, width: 640, height: 260 };
  let isPrinted = false;
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross"];
  const FIGURES = [
    "M16 3a3 3 0 1 0 .01 0", "M13 3h6v6h-6z", "M16 2l4 4-4 4-4-4z", "M16 2l4 7h-8z", "M16 10l-4-7h8z",
    "M15 2h2v3h3v2h-3v3h-2V7h-3V5h3z",
  ];
  const CONFIG = {
    displaylogo: false,
    responsive: true,
    scrollZoom: false,
    displayModeBar: false,
    doubleClick: false,
    showSendToCloud: false,
    plotlyServerURL: "",
  };

  function token(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function faded(colour, share) {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    return `rgba(${red}, ${green}, ${blue}, ${share})`;
  }

  // Lines of like tones and dashes still have other markers.
  function styleOf(line) {
    const dash = line.place % DASHES.length;
    const symbol = (line.place + Math.floor(line.place / DASHES.length)) % SYMBOLS.length;
    return { colour: token(`--${line.tone}-fill`), dash, symbol };
  }

  // The drawing knows UTC only, so it is given times that are moved by the offset that the reader's
  // zone has at the end of the window, and says which.
  function offsetMs(moment) {
    const zone = document.documentElement.dataset.zone || "UTC";
    const shape = { timeZoneName: "longOffset", ...(zone === "browser" ? {} : { timeZone: zone }) };
    const name = new Intl.DateTimeFormat("en-US", shape).formatToParts(moment).find((part) => part.type === "timeZoneName").value;
    const [, sign, hours, minutes] = /GMT(?:([+-])(\d\d):(\d\d))?/.exec(name);
    return sign ? Number(`${sign}1`) * (60 * Number(hours) + Number(minutes)) * 60000 : 0;
  }

  function zoneWords(offset) {
    const minutes = Math.abs(offset) / 60000;
    if (!minutes) return "UTC";
    const rest = minutes % 60 ? `:${String(minutes % 60).padStart(2, "0")}` : "";
    return `UTC${offset < 0 ? "-" : "+"}${Math.floor(minutes / 60)}${rest}`;
  }

  // Numbers would be moved to the browser's own zone: Plotly is told what to write.
  function written(moment) {
    return new Date(moment).toISOString().slice(0, 19).replace("T", " ");
  }

  function timesOf(data) {
    return Array.from({ length: data.bins }, (_, number) => written(1000 * (data.first + number * data.step_s) + data.offset));
  }

  function shifted(data, time) {
    return Date.parse(time) + data.offset;
  }

  // It tells times in the same way, without a zone.
  function unshifted(data, time) {
    return Date.parse(`${time.replace(" ", "T")}Z`) - data.offset;
  }

  // One closed outline for each stretch without a gap.
  function bandOf(times, low, high) {
    const x = [], y = [];
    let from = 0;
    for (let at = 0; at <= times.length; at += 1) {
      if (at < times.length && low[at] !== null) continue;
      if (at > from) {
        if (x.length) { x.push(null); y.push(null); }
        x.push(...times.slice(from, at), ...times.slice(from, at).reverse());
        y.push(...high.slice(from, at), ...low.slice(from, at).reverse());
      }
      from = at + 1;
    }
    return { x, y };
  }

  function tracesOf(data, hidden) {
    const times = timesOf(data);
    const unit = data.unit === "s" ? " s" : "";
    return data.lines.filter((line) => !hidden.has(line.name)).flatMap((line) => {
      const { colour, dash, symbol } = styleOf(line);
      const trace = {
        x: times, y: line.value, type: "scatter", mode: "lines+markers", name: line.label, connectgaps: false,
        line: { color: colour, width: 1.75, dash: DASHES[dash], shape: data.kind === "count" ? "hvh" : "linear" },
        marker: { symbol: SYMBOLS[symbol], size: 6.5, color: colour, maxdisplayed: 12 },
        hovertemplate: `%{y:,.4~g}${unit}`,
      };
      if (!line.top) return [trace];
      trace.customdata = line.top;
      trace.hovertemplate = `%{y:,.4~g}${unit}, max %{customdata:,.4~g}${unit}`;
      return [
        {
          ...bandOf(times, line.value, line.top), type: "scatter", mode: "lines", fill: "toself", hoverinfo: "skip",
          line: { width: 0 }, fillcolor: faded(colour, 0.22), showlegend: false,
        },
        trace,
      ];
    });
  }

  // Marks that are too near to each other to be read share a flag.
  function flagsOf(data, width) {
    const [from, to] = [data.from, data.to].map((time) => shifted(data, time));
    const flags = [];
    data.marks.forEach((mark, at) => {
      const moment = Math.max(shifted(data, mark.at), from);
      const last = flags[flags.length - 1];
      if (last && ((moment - last.moment) / (to - from)) * width < 26) {
        last.to = at + 1;
        last.words.push(mark.words);
      } else flags.push({ moment, from: at + 1, to: at + 1, words: [mark.words] });
    });
    return flags;
  }

  function marksOf(data, width) {
    const line = token("--ink-3");
    const shapes = data.marks.map((mark) => {
      const shape = { layer: "below", yref: "paper", y0: 0, y1: 1, x0: written(shifted(data, mark.at)) };
      if (!mark.until) return { ...shape, type: "line", x1: shape.x0, line: { color: line, width: 1, dash: "dot" } };
      return { ...shape, type: "rect", x1: written(shifted(data, mark.until)), line: { width: 0 }, fillcolor: faded(token("--warn-fill"), 0.14) };
    });
    const annotations = flagsOf(data, width).map((flag) => ({
      x: written(flag.moment), y: 1, yref: "paper", yanchor: "bottom", showarrow: false, borderpad: 1.5,
      text: flag.from === flag.to ? `${flag.from}` : `${flag.from}–${flag.to}`,
      hovertext: flag.words.slice(0, 8).map((words) => words.replace(/</g, "&lt;")).join("<br>"),
      font: { size: 10, color: token("--ink-2") }, bgcolor: token("--surface"), bordercolor: token("--line-strong"),
      hoverlabel: { bgcolor: token("--raised"), bordercolor: token("--line-strong"), font: { color: token("--ink") } },
    }));
    return { shapes, annotations };
  }

  function layoutOf(data, plot, isLinked) {
    const width = plot.clientWidth;
    const isNarrow = width < 500;
    const axis = { gridcolor: token("--line"), zeroline: false, linecolor: token("--line-strong"), tickcolor: token("--line-strong") };
    return {
      ...(isPrinted ? PAPER : { autosize: true }),
      margin: { l: 48, r: 14, t: 20, b: 36 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: token("--font"), size: 12, color: token("--ink-2") },
      showlegend: false,
      hovermode: "x unified",
      hoverlabel: { bgcolor: token("--raised"), bordercolor: token("--line-strong"), font: { color: token("--ink") } },
      uirevision: `${data.from.slice(0, 10)}/${data.step_s}`,
      xaxis: {
        ...axis, type: "date", range: (isLinked ? [shifted(data, data.from), shifted(data, data.to)] : rangeOf(data)).map(written),
        hoverformat: `%Y-%m-%d %H:%M ${data.zone}`, tickangle: 0, nticks: isNarrow ? 4 : 8, tickformatstops: TICKS,
      },
      yaxis: { ...axis, rangemode: "tozero", tickformat: peakOf(data) < 10 ? "~g" : "~s", fixedrange: true, nticks: 6 },
      dragmode: isNarrow ? false : "zoom",
      ...marksOf(data, width - 62),
    };
  }

  function peakOf(data) {
    return Math.max(0, ...data.lines.flatMap((line) => line.top || line.value));
  }

  // Alone a chart shows what there is: a portal that runs for an hour is not drawn as an empty day.
  function rangeOf(data) {
    const first = Math.min(...data.lines.map((line) => line.value.findIndex((value) => value !== null)).filter((at) => at >= 0));
    const to = shifted(data, data.to);
    const oldest = Number.isFinite(first) ? 1000 * (data.first + first * data.step_s) + data.offset : to;
    return [Math.max(Math.min(oldest, to - 10000 * data.step_s), shifted(data, data.from)), to];
  }

  function legendItem(box, line) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    const { colour, dash, symbol } = styleOf(line);
    button.type = "button";
    button.dataset.line = line.name;
    button.setAttribute("aria-pressed", String(!box.hiddenLines.has(line.name)));
    button.innerHTML = `<svg viewBox="0 0 32 12" width="32" height="12" aria-hidden="true"><path d="M0 6h32" fill="none" stroke="${colour}" stroke-width="2" stroke-dasharray="${STROKES[dash]}"/><path d="${FIGURES[symbol]}" fill="${colour}"/></svg>`;
    button.append(line.label);
    item.append(button);
    return item;
  }

  function drawLegend(box) {
    const list = box.querySelector("[data-chart-legend]");
    const focused = document.activeElement?.closest("[data-chart-legend]") === list && document.activeElement.dataset.line;
    list.replaceChildren(...box.pilotageData.lines.map((line) => legendItem(box, line)));
    if (focused) list.querySelector(`[data-line="${CSS.escape(focused)}"]`)?.focus();
  }

  function draw(box) {
    const data = box.pilotageData;
    const plot = box.querySelector("[data-chart-plot]");
    const summary = box.querySelector("[data-chart-summary]");
    if (summary.textContent !== data.summary) summary.textContent = data.summary;
    box.querySelector("[data-chart-note]").textContent = `${data.legend[0].toUpperCase()}${data.legend.slice(1)}, ${data.unit}, ${data.zone}.`;
    drawLegend(box);
    Plotly.react(plot, tracesOf(data, box.hiddenLines), layoutOf(data, plot, "linked" in box.dataset), CONFIG);
    if (box.isHeard) return;
    box.isHeard = true;
    plot.on("plotly_hover", (event) => tell(box, "hover", { x: unshifted(box.pilotageData, event.xvals[0]) }));
    plot.on("plotly_unhover", () => tell(box, "hover", { x: null }));
    plot.on("plotly_relayout", (change) => {
      const [from, to] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (from && to) tell(box, "range", { from: unshifted(box.pilotageData, from), to: unshifted(box.pilotageData, to) });
    });
    box.querySelector("[data-chart-png]").hidden = false;
  }

  function tell(box, what, detail) {
    box.dispatchEvent(new CustomEvent(`pilotage:chart-${what}`, { bubbles: true, detail }));
  }

  async function savePng(box) {
    const data = box.pilotageData;
    const plot = box.querySelector("[data-chart-plot]");
    const title = `${data.title}${data.site ? ` at ${data.site}` : ""} (${data.legend}, ${data.unit}, ${data.zone})`;
    const layout = {
      ...layoutOf(data, plot, true), paper_bgcolor: token("--surface"), plot_bgcolor: token("--surface"), showlegend: true,
      title: { text: title, font: { size: 15, color: token("--ink") } }, margin: { l: 56, r: 20, t: 64, b: 44 }, autosize: false,
    };
    const figure = { data: tracesOf(data, box.hiddenLines), layout };
    const link = document.createElement("a");
    link.href = await Plotly.toImage(figure, { format: "png", width: 1100, height: 460, scale: 2 });
    link.download = `${data.file}.png`;
    link.click();
  }

  async function load(box) {
    if (document.hidden && box.pilotageData) return;
    // About a point for each two pixels; not another number for each width, so that answers can be kept.
    const points = Math.max(100, 50 * Math.ceil(box.clientWidth / 100));
    const address = `${box.dataset.chart}&points=${Math.min(points, MOST_POINTS)}`;
    try {
      const answer = await fetch(address, { headers: { Accept: "application/json" } });
      if (!answer.ok || answer.redirected || !box.isConnected) return;
      const data = await answer.json();
      data.offset = offsetMs(Date.parse(data.to));
      data.zone = zoneWords(data.offset);
      box.pilotageData = data;
    } catch {
      return; // no answer: the page's stamp says that the data are old
    }
    box.hiddenLines ??= new Set(box.pilotageData.lines.filter((line) => line.is_folded).map((line) => line.name));
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
