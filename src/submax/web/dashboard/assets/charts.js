// Draws every <figure data-chart> from the table that it holds, so that the numbers are on the
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
      const found = { name: head.dataset.series, role: head.dataset.role || "line", place: Number(head.dataset.place ?? NaN), data: column(place) };
      series.push(found);
    });
    return { x: rows.map((row) => value(row.cells[0])), series };
  }

  // Eight colours, then the same ones dashed, then dotted.
  const DASHES = [undefined, [8, 5], [2, 4]];

  function lines(figure, { x, series }) {
    const data = [x], options = [{}], bands = [], off = switchedOff(figure);
    const names = [...new Set(series.map((one) => one.name))];
    for (const name of names) {
      const of = (role) => series.find((one) => one.name === name && one.role === role);
      // A line that says its place keeps its colour when others are added before it.
      const line = of("line"), place = isNaN(line.place) ? names.indexOf(name) : line.place;
      const stroke = colour(`--series-${place % 8}`);
      if (off.has(name)) continue;
      const dash = DASHES[Math.min(Math.floor(place / 8), 2)];
      options.push({ label: name, stroke, dash, width: 2, points: { size: 5, show: x.length < 40 } });
      data.push(line.data);
      if (of("low") && of("high")) {
        options.push({ stroke: "transparent", points: { show: false } });
        data.push(of("high").data);
        options.push({ stroke: "transparent", points: { show: false } });
        data.push(of("low").data);
        bands.push({ series: [data.length - 2, data.length - 1], fill: `${stroke}33` });
      }
    }
    return { data, options, bands, range: undefined };
  }

  // Lines can be switched off by checkboxes, and stay so when the page is loaded again.
  const switches = (figure) => [...figure.querySelectorAll("input[data-switch]")];
  const remembered = (figure) => `off ${location.pathname} ${figure.id}`;
  function restoreSwitches(figure) {
    const off = new Set(JSON.parse(sessionStorage.getItem(remembered(figure)) || "[]"));
    for (const one of switches(figure)) one.checked = !off.has(one.dataset.switch);
  }
  function switchedOff(figure) {
    return new Set(switches(figure).filter((one) => !one.checked).map((one) => one.dataset.switch));
  }
  function switched(figure) {
    sessionStorage.setItem(remembered(figure), JSON.stringify([...switchedOff(figure)]));
    draw(figure);
  }
  addEventListener("change", (event) => {
    if (event.target.dataset?.switch !== undefined) switched(event.target.closest("figure"));
  });
  addEventListener("click", (event) => {
    const wanted = event.target.dataset?.switchAll, figure = event.target.closest?.("figure");
    if (!wanted || !figure) return;
    for (const one of switches(figure)) one.checked = wanted === "on";
    switched(figure);
  });

  // Shares of a whole, one above the other.
  function stack(figure, { x, series }) {
    const data = [x], options = [{}], bands = [];
    let below = x.map(() => 0);
    series.forEach((one, place) => {
      const top = one.data.map((share, row) => (share === null ? null : below[row] + share));
      const stroke = colour(`--series-${Math.min(place, 8)}`);
      options.push({ label: one.name, stroke, width: 1, fill: place === 0 ? `${stroke}88` : undefined, points: { show: false } });
      data.push(top);
      if (place > 0) bands.push({ series: [place + 1, place], fill: `${stroke}88` });
      below = top.map((share) => share ?? 0);
    });
    return { data, options, bands, range: [0, 1] };
  }

  function marks(figure) {
    const times = (figure.dataset.marks || "").split(" ").filter(Boolean).map(Number);
    return (chart) => {
      const { ctx, bbox } = chart;
      ctx.save();
      ctx.strokeStyle = colour("--quiet");
      ctx.setLineDash([2, 4]);
      const shown = times.map((time) => Math.round(chart.valToPos(time, "x", true)))
        .filter((left) => left >= bbox.left && left <= bbox.left + bbox.width);
      // So many lines that they cover the chart would say nothing.
      for (const left of shown.length > 40 ? [] : shown) {
        ctx.beginPath();
        ctx.moveTo(left, bbox.top);
        ctx.lineTo(left, bbox.top + bbox.height);
        ctx.stroke();
      }
      ctx.restore();
    };
  }

  function draw(figure) {
    const table = figure.querySelector("table"), place = figure.querySelector(".plot");
    if (!table || !place || !table.tBodies[0] || !table.tBodies[0].rows.length) return;
    drawn.get(figure)?.destroy();
    const made = (figure.dataset.chart === "stack" ? stack : lines)(figure, read(table));
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    const percent = figure.dataset.unit === "percent";
    const shown = (number) => (percent ? `${+(100 * number).toPrecision(4)} %` : `${+number.toPrecision(4)}`);
    const chart = new uPlot({
      width: Math.max(place.clientWidth, 200), height: Math.max(place.clientHeight, 200),
      cursor: { drag: { x: true, y: false } }, legend: { show: false },
      scales: { x: { time: figure.dataset.x !== "number" }, y: made.range ? { range: () => made.range } : {} },
      axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map(shown) }],
      series: made.options, bands: made.bands, hooks: { draw: [marks(figure)] },
    }, made.data, place);
    drawn.set(figure, chart);
  }

  function drawAll() {
    for (const figure of drawn.keys()) if (!figure.isConnected) drawn.delete(figure);
    document.querySelectorAll("figure[data-chart]").forEach((one) => { restoreSwitches(one); draw(one); });
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
