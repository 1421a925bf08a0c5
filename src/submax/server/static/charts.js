// Draws every <figure data-chart> from the table that it holds, so the numbers are on the
// page once, and people who cannot see a chart read the same ones.
"use strict";
(() => {
  const drawn = new Map();
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const value = (cell) => (cell.dataset.value === "" ? null : Number(cell.dataset.value));

  // The columns of a table: x, and for each series its values and, if there is one, its band.
  function read(table) {
    const heads = [...table.tHead.rows[0].cells].slice(1);
    const rows = [...table.tBodies[0].rows];
    const column = (place) => rows.map((row) => value(row.cells[place + 1]));
    const series = [];
    heads.forEach((head, place) => {
      series.push({ name: head.dataset.series, role: head.dataset.role || "line", colour: Number(head.dataset.colour), data: column(place) });
    });
    return { x: rows.map((row) => value(row.cells[0])), series };
  }

  // Eight colours, then the same ones dashed, then dotted.
  const DASHES = [undefined, [8, 5], [2, 4]];

  function lines({ x, series }) {
    const data = [x], options = [{}], bands = [];
    for (const line of series.filter((one) => one.role === "line")) {
      const of = (role) => series.find((one) => one.name === line.name && one.role === role);
      const stroke = colour(`--series-${line.colour % 8}`), dash = DASHES[Math.min(Math.floor(line.colour / 8), 2)];
      options.push({ label: line.name, stroke, dash, width: 2, points: { size: 5, show: x.length < 40 } });
      data.push(line.data);
      if (of("low") && of("high")) {
        for (const role of ["high", "low"]) {
          options.push({ stroke: "transparent", points: { show: false } });
          data.push(of(role).data);
        }
        bands.push({ series: [data.length - 2, data.length - 1], fill: `${stroke}33` });
      }
    }
    return { data, options, bands };
  }

  // Shares of a whole, one above the other.
  function stack({ x, series }) {
    const data = [x], options = [{}], bands = [];
    let below = x.map(() => 0);
    series.forEach((one, place) => {
      const top = one.data.map((share, row) => (share === null ? null : below[row] + share));
      const stroke = colour(`--series-${one.colour === 8 ? 8 : one.colour % 8}`);
      options.push({ label: one.name, stroke, width: 1, fill: place === 0 ? `${stroke}88` : undefined, points: { show: false } });
      data.push(top);
      if (place > 0) bands.push({ series: [place + 1, place], fill: `${stroke}88` });
      below = top.map((share) => share ?? 0);
    });
    return { data, options, bands, range: [0, 1] };
  }

  function draw(figure) {
    const table = figure.querySelector("table"), place = figure.querySelector(".plot");
    if (!table || !place || !table.tBodies[0] || !table.tBodies[0].rows.length) return;
    drawn.get(figure)?.destroy();
    const made = (figure.dataset.chart === "stack" ? stack : lines)(read(table));
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    const percent = figure.dataset.unit === "percent";
    const shown = (number) => (percent ? `${+(100 * number).toPrecision(4)} %` : `${+number.toPrecision(4)}`);
    const chart = new uPlot({
      width: Math.max(place.clientWidth, 200), height: Math.max(place.clientHeight, 200),
      cursor: { drag: { x: true, y: false } }, legend: { show: false },
      // One point alone stands in the middle of an hour.
      scales: {
        x: { range: (_, low, high) => (low === high ? [low - 1800, high + 1800] : [low, high]) },
        y: made.range ? { range: () => made.range } : {},
      },
      axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map(shown) }],
      series: made.options, bands: made.bands,
    }, made.data, place);
    drawn.set(figure, chart);
  }

  function drawAll() {
    for (const figure of drawn.keys()) if (!figure.isConnected) drawn.delete(figure);
    document.querySelectorAll("figure[data-chart]").forEach(draw);
  }
  // Times are written in UTC; the viewer sees their own zone.
  function localTimes() {
    document.querySelectorAll("time[datetime]").forEach((one) => {
      const at = new Date(one.getAttribute("datetime"));
      if (!isNaN(at)) { one.textContent = at.toLocaleString(); one.title = at.toISOString(); }
    });
  }
  const all = () => { drawAll(); localTimes(); };
  addEventListener("DOMContentLoaded", all);
  addEventListener("htmx:afterSettle", all);
  let waiting;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(drawAll, 150); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
})();
