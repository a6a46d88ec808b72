// Draws the history charts: a line for the average of each bin, a band from its minimum to its
// maximum. Colours come from the design tokens and follow the theme. The page's table has the same
// figures for readers without this script.
(function () {
  "use strict";
  const REFRESH_MS = 60000;
  const DASHES = {
    running: "solid", waiting: "dash", idle: "dash", queued: "dash", submitted: "dot", matched: "dot", received: "dot",
    held: "longdash", stalled: "dashdot", failed: "longdashdot", requests: "dash", unmatched: "dot",
  };
  const CONFIG = {
    displaylogo: false,
    responsive: true,
    scrollZoom: false,
    displayModeBar: false,
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

  function stepName(stepS) {
    const units = [[86400, "day"], [3600, "h"], [60, "min"], [1, "s"]];
    const [size, unit] = units.find(([length]) => stepS >= length);
    return `${stepS / size} ${unit}`;
  }

  function short(figure) {
    return String(Number(figure.toFixed(Math.abs(figure) < 1 ? 2 : 1)));
  }

  // A bin that is missing breaks the line: a gap stays a gap.
  function withGaps(series, stepS) {
    const out = { x: [], min: [], avg: [], max: [] };
    let last = null;
    series.start.forEach((start, i) => {
      const moment = Date.parse(start);
      if (last !== null && moment - last > 1500 * stepS) {
        out.x.push(new Date(last + 1000 * stepS).toISOString());
        out.min.push(null);
        out.avg.push(null);
        out.max.push(null);
      }
      out.x.push(start);
      out.min.push(series.min[i]);
      out.avg.push(series.avg[i]);
      out.max.push(series.max[i]);
      last = moment;
    });
    return out;
  }

  // A band is one closed outline for each stretch without a gap.
  function bandOf(bins) {
    const x = [], y = [];
    let from = 0;
    for (let i = 0; i <= bins.x.length; i += 1) {
      if (i < bins.x.length && bins.avg[i] !== null) continue;
      if (i > from) {
        if (x.length) { x.push(null); y.push(null); }
        x.push(...bins.x.slice(from, i), ...bins.x.slice(from, i).reverse());
        y.push(...bins.max.slice(from, i), ...bins.min.slice(from, i).reverse());
      }
      from = i + 1;
    }
    return { x, y };
  }

  function tracesOf(data) {
    return data.series.flatMap((series) => {
      const colour = token(`--${series.tone}-fill`);
      const bins = withGaps(series, data.step_s);
      const band = bandOf(bins);
      const shared = { legendgroup: series.state, visible: series.is_folded ? "legendonly" : true };
      return [
        {
          ...shared, x: band.x, y: band.y, type: "scatter", mode: "lines", fill: "toself", hoverinfo: "skip",
          showlegend: false, line: { width: 0 }, fillcolor: faded(colour, 0.2),
        },
        {
          ...shared, x: bins.x, y: bins.avg, type: "scatter", name: series.state,
          // A single bin is no line yet.
          mode: bins.x.length > 2 ? "lines" : "lines+markers",
          line: { color: colour, width: 2, dash: DASHES[series.state] || "solid" },
          customdata: bins.min.map((low, k) => [low, bins.max[k]]),
          hovertemplate: `%{y:.2~f} (%{customdata[0]:.2~f} to %{customdata[1]:.2~f})`,
        },
      ];
    });
  }

  function layoutOf(data, isNarrow) {
    const ink = token("--ink-2");
    const axis = { gridcolor: token("--line"), zeroline: false, linecolor: token("--line-strong"), tickcolor: token("--line-strong") };
    return {
      autosize: true,
      margin: { l: 44, r: 14, t: 8, b: 44 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: token("--font"), size: 12, color: ink },
      hovermode: "x unified",
      hoverlabel: { bgcolor: token("--raised"), bordercolor: token("--line-strong"), font: { color: token("--ink") } },
      uirevision: data.archive,
      xaxis: { ...axis, type: "date", range: rangeOf(data), hoverformat: "%Y-%m-%d %H:%M UTC", tickangle: 0, nticks: isNarrow ? 4 : 9 },
      yaxis: { ...axis, rangemode: "tozero", automargin: true, tickformat: peakOf(data) < 10 ? "~g" : "~s", fixedrange: isNarrow },
      dragmode: isNarrow ? false : "zoom",
      legend: {
        orientation: "h", x: 0, y: 1.02, yanchor: "bottom", xanchor: "left",
        title: {
          text: `Average of ${stepName(data.step_s)} bins,${isNarrow ? "<br>" : " "}band from minimum to maximum, UTC`,
          side: "top", font: { size: 11.5, color: token("--ink-3") },
        },
        font: { color: ink },
      },
    };
  }

  function peakOf(data) {
    return Math.max(0, ...data.series.flatMap((series) => series.max));
  }

  // Shows what there is: a portal that runs for an hour is not drawn as an empty day.
  function rangeOf(data) {
    const starts = data.series.flatMap((series) => series.start.slice(0, 1)).map(Date.parse);
    const to = Date.parse(data.to);
    const oldest = Math.max(Math.min(...starts, to), Date.parse(data.from));
    const shortest = 10 * 1000 * data.step_s;
    return [new Date(Math.min(oldest, to - shortest)).toISOString(), data.to];
  }

  function sentenceOf(data) {
    if (!data.series.length) return "Nothing was sampled in this range yet.";
    const parts = data.series.flatMap((series) => {
      const last = series.avg[series.avg.length - 1];
      if (series.is_folded || !last) return [];
      return [`${series.state} ${short(last)} (peak ${short(Math.max(...series.max))})`];
    });
    if (!parts.length) return "Nothing is under way.";
    return `Last ${stepName(data.step_s)} on average: ${parts.join(", ")}.`;
  }

  function draw(box) {
    const data = box.pilotageData;
    const plot = box.querySelector("[data-chart-plot]");
    const summary = box.querySelector("[data-chart-summary]");
    const sentence = sentenceOf(data);
    if (summary.textContent !== sentence) summary.textContent = sentence;
    const isNarrow = plot.clientWidth < 500;
    Plotly.react(plot, tracesOf(data), layoutOf(data, isNarrow), CONFIG);
  }

  async function load(box) {
    if (document.hidden && box.pilotageData) return;
    try {
      const answer = await fetch(box.dataset.chart, { headers: { Accept: "application/json" } });
      if (!answer.ok || answer.redirected) return;
      box.pilotageData = await answer.json();
    } catch {
      return; // no answer: the page's stamp says that the data are old
    }
    draw(box);
  }

  const boxes = [...document.querySelectorAll("[data-chart]")];
  boxes.forEach(load);
  setInterval(() => boxes.forEach(load), REFRESH_MS);
  document.addEventListener("pilotage:theme", () => {
    boxes.filter((box) => box.pilotageData).forEach(draw);
  });
})();
