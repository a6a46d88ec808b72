// The history page as one view: its address holds all of it. A range that is chosen, or drawn in a
// chart, becomes a new address whose page replaces this one in place; the cursor is shown in all
// charts. Without this script the same links and the form lead to the same addresses.
(function () {
  "use strict";
  const SHORTEST_MS = 60000;

  async function show(address) {
    await htmx.ajax("GET", address, { target: "#history", select: "#history", swap: "outerHTML" });
  }

  function go(address) {
    const url = new URL(address, window.location.href);
    if (url.href !== window.location.href) window.history.pushState({}, "", url);
    show(url.href);
  }

  function minute(moment) {
    return `${new Date(moment).toISOString().slice(0, 16)}Z`;
  }

  function isPlain(event) {
    return event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("#history a[data-view]");
    if (!link || !isPlain(event)) return;
    event.preventDefault();
    go(link.href);
  });

  document.addEventListener("submit", (event) => {
    if (!event.target.matches("#history form[data-view]")) return;
    event.preventDefault();
    const fields = [...new FormData(event.target)].filter(([, value]) => value !== "" && value !== "auto");
    const hasTimes = fields.some(([name]) => name === "from" || name === "to");
    const wanted = fields.filter(([name]) => !(hasTimes && name === "range"));
    go(`${window.location.pathname}?${new URLSearchParams(wanted)}`);
  });

  document.addEventListener("pilotage:chart-range", (event) => {
    const { from, to } = event.detail;
    const query = new URLSearchParams(window.location.search);
    query.delete("range");
    query.set("from", minute(from));
    query.set("to", minute(Math.max(to + SHORTEST_MS / 2, from + 2 * SHORTEST_MS)));
    go(`${window.location.pathname}?${query}`);
  });

  function cursorOf(plot) {
    let cursor = plot.parentElement.querySelector(".chart-cursor");
    if (!cursor) {
      cursor = document.createElement("div");
      cursor.className = "chart-cursor";
      plot.before(cursor);
    }
    return cursor;
  }

  document.addEventListener("pilotage:chart-hover", (event) => {
    const { x } = event.detail;
    for (const box of document.querySelectorAll("#history [data-linked]")) {
      const plot = box.querySelector("[data-chart-plot]");
      if (!box.pilotageData || !plot.clientWidth) continue;
      const { figure, on_page: onPage } = box.pilotageData;
      const { l: left, r: right } = onPage.margin;
      const [from, to] = [figure.layout.meta.from, figure.layout.meta.to].map(Date.parse);
      const share = x === null || box === event.target ? -1 : (x - from) / (to - from);
      const cursor = cursorOf(plot);
      cursor.hidden = share < 0 || share > 1;
      cursor.style.left = `${plot.offsetLeft + left + share * (plot.clientWidth - left - right)}px`;
      cursor.style.top = `${plot.offsetTop + 20}px`;
      cursor.style.height = `${plot.clientHeight - 56}px`;
    }
  });

  window.addEventListener("popstate", () => show(window.location.href));
})();
