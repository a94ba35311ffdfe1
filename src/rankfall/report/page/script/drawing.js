// ---- a chart drawn by Vega-Lite ----

// An axis' title in lines of at most so many pixels.
function folded(title, pixels) {
  const most = Math.max(12, Math.floor(pixels / 6.6)), lines = [""];
  for (const word of title.split(" ")) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (longer.length > most && lines.at(-1)) lines.push(word); else lines[lines.length - 1] = longer;
  }
  return lines.length > 1 ? lines : title;
}
// Places on a symmetric logarithmic axis: powers of ten on both sides of 0, within what there is.
function powers(marks) {
  const low = Math.min(...marks.map((mark) => mark.low)), high = Math.max(...marks.map((mark) => mark.high)), found = [0];
  for (let size = 1; size <= Math.max(-low, high); size *= 10) found.push(...[-size, size].filter((one) => one >= low && one <= high));
  return found;
}

// What a kind of chart draws, for Vega-Lite. What depends on the numbers that are shown follows below.
function specOf(chart) {
  const line = { field: "line", type: "nominal", legend: null }, point = { type: "point", filled: true, cursor: "pointer", opacity: 1 };
  const tip = (field, title) => ({ field, type: "nominal", title }), named = tip("line", chart.line.replaceAll("_", " "));
  const rest = [tip("value", chart.measured_title), tip("band", "deviation"), tip("beside", "beside it"), tip("also", "same point"), tip("keys", "networks")];
  const number = (field, title) => ({ field, type: "quantitative", title }), beside = { name: "beside" };
  const kinds = {
    lines() {
      const x = { ...number("x", chart.x_title), axis: { grid: false } }, y = (field) => number(field, chart.y_title), level = { field: "shown", type: "nominal", legend: null };
      return [
        { mark: { type: "area", opacity: 0.16 }, encoding: { x, y: y("low"), y2: { field: "high" }, color: line } },
        { data: beside, mark: { type: "line", strokeWidth: 1.5, strokeDash: [2, 4] }, encoding: { x, y: y("mean"), color: level, detail: tip("group") } },
        { mark: { type: "line", strokeWidth: 2 }, encoding: { x, y: y("mean"), color: line, detail: tip("group") } },
        { mark: { ...point, size: 55 }, encoding: { x, y: y("mean"), color: line, shape: line, tooltip: [named, { ...tip("x", chart.x_title), type: "quantitative" }, ...rest] } },
        { data: beside, mark: { type: "text", align: "right", baseline: "bottom", dy: -3, fontSize: 11 }, encoding: { x, y: y("mean"), text: tip("label"), color: level } },
      ];
    },
    points() {
      const y = { field: "line", type: "nominal", title: null, axis: { grid: true } }, x = (field) => number(field, chart.measured_title);
      return [
        { mark: { type: "rule", strokeWidth: 2 }, encoding: { y, x: x("low"), x2: { field: "high" }, color: line } },
        { data: beside, mark: { type: "tick", thickness: 3, size: 18 }, encoding: { y, x: x("mean"), color: { value: "@grey@" } } },
        { mark: { ...point, size: 90 }, encoding: { y, x: x("mean"), color: line, tooltip: [named, ...rest] } },
      ];
    },
    grid() {
      const x = { ...tip("x", chart.x_title), axis: { labelAngle: -35 } }, y = tip("y", chart.y_title), tooltip = [y, tip("x", chart.x_title), tip("value", chart.measured_title)];
      const ink = { condition: { test: "datum.light", value: "#ffffff" }, value: "#111111" };
      return [
        { mark: "rect", encoding: { x, y, color: { ...number("mean", chart.measured_title), legend: { orient: "top" } }, tooltip } },
        { mark: { type: "text", fontSize: 11 }, encoding: { x, y, text: tip("value"), color: ink, tooltip } },
      ];
    },
  };
  return JSON.parse(JSON.stringify({ width: "container", height: 320, layer: kinds[chart.kind]() })); // layers share no parts
}

const besides = (layer) => Boolean(layer.data) && layer.data.name === "beside";

async function drawChart(panel, marks) {
  await LIBRARY;
  const { chart, box } = panel, inner = make("div"), holder = box.querySelector(".view");
  const spec = specOf(chart);
  if (!panel.shownLevels.length) spec.layer = spec.layer.filter((layer) => !besides(layer));
  if (chart.kind === "lines") specifyLines(panel, spec, marks);
  else if (chart.kind === "points") specifyPoints(panel, spec, marks);
  else inner.style.minWidth = `${specifyGrid(panel, spec, marks)}px`; // squares that a number has room in
  specifyAxes(panel, spec);
  const style = getComputedStyle(document.documentElement), ink = style.getPropertyValue("--ink").trim(), line = style.getPropertyValue("--line").trim();
  spec.config = { background: null, font: "system-ui, sans-serif", view: { stroke: null }, axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", labelLimit: 170, labelFlush: false }, legend: { labelColor: ink, titleColor: ink, titleLimit: 400 }, text: { color: ink }, aria: false };
  spec.data = { name: "rows" };
  spec.datasets = { rows: rowsOf(panel, marks), beside: panel.shownLevels };
  const turn = (panel.turn = (panel.turn || 0) + 1);
  if (panel.result) panel.result.finalize();
  holder.replaceChildren(inner);
  const result = await window.vegaEmbed(inner, spec, { actions: false, renderer: marks.length > 3000 ? "canvas" : "svg", tooltip: { theme: dark() ? "dark" : "light" } });
  if (turn !== panel.turn) return;
  panel.result = result;
  if (holder.scrollWidth > holder.clientWidth) holder.tabIndex = 0; else holder.removeAttribute("tabindex"); // scrolled by keyboard too
  reachable(panel, inner);
  box.dataset.drawn = String(marks.length);
}

// Rows as the specification has them. Of points at one place the first is the largest, so that a rim of each is seen.
function rowsOf(panel, marks) {
  const grid = panel.chart.kind === "grid", rims = unique(marks.map((mark) => mark.x)).length <= 30;
  return marks.map(({ cells, numbers, ...mark }, at) => {
    const met = (panel.meetings.get(marks[at]) || []).map((one) => one.line), here = inOrder(unique([mark.line, ...met]));
    const size = 55 + (rims && met.length ? 75 * Math.min(3, here.length - 1 - here.indexOf(mark.line)) : 0);
    const also = few(here.filter((line) => line !== mark.line));
    return { ...mark, ...(grid ? { y: String(mark.y), x: String(mark.x), light: panel.lightInk(mark.mean) } : {}), at, size, also, beside: panel.besides(mark) };
  }).sort((a, b) => b.size - a.size);
}

function specifyLines(panel, spec, marks) {
  const scale = panel.axis(marks), wide = panel.scale === "wide", [least, most] = panel.chart.within;
  const whole = marks.every((mark) => Number.isInteger(mark.x)), dense = marks.length > 60 * unique(marks.map((mark) => mark.group)).length;
  const shown = [...marks, ...panel.shownLevels.map(({ mean }) => ({ low: mean, high: mean }))];
  const low = Math.min(...shown.map((mark) => mark.low)), high = Math.max(...shown.map((mark) => mark.high)), one = low === high && scale === "linear";
  const turns = dashes(hidden(marks, panel.meetings, panel.mode));
  for (const layer of spec.layer) {
    const { x, y, tooltip } = layer.encoding;
    y.scale = scale === "log" ? { type: "log" } : { type: scale, zero: false };
    if (one) { // one value: in the middle of an axis, within what is possible
      const half = low ? Math.abs(low) / 2 : 1;
      y.scale.domain = [Math.max(low - half, least ?? -Infinity), Math.min(low + half, most ?? Infinity)];
    }
    if (scale === "log") y.axis = { ...y.axis, gridOpacity: { condition: { test: "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-6", value: 1 }, value: 0.3 } };
    if (scale === "symlog") {
      y.scale = { ...y.scale, nice: false };
      y.axis = { values: powers(marks), labelExpr: wide ? "format(datum.value, '~g')" : "datum.value ? '10^' + format(datum.value, ',') : '1'" }; // else values are logarithms
    }
    const xs = marks.map((mark) => mark.x), first = Math.min(...xs);
    if (panel.chart.x === "times") x.scale = { type: "log", base: 2 };
    else if (wide && first > 0 && Math.max(...xs) >= 16 * first) x.scale = { type: "log" };
    else if (whole) x.axis = { ...x.axis, tickMinStep: 1, format: "d", ...(Math.max(...xs) - first < 10 ? { values: [...new Set(xs)] } : {}) };
    if (tooltip && dense) layer.mark.size = 12; // hundreds of points a line
    else if (tooltip) layer.encoding.size = { field: "size", type: "quantitative", scale: null, legend: null };
    if (layer.mark.type === "line" && !besides(layer) && turns.size) {
      const lines = unique(marks.map((mark) => mark.line));
      layer.encoding.strokeDash = { field: "line", type: "nominal", legend: null, scale: { domain: lines, range: lines.map((line) => turns.get(line) || [1, 0]) } };
    }
  }
}

function specifyPoints(panel, spec, marks) {
  const lines = unique([...marks].sort((a, b) => b.mean - a.mean).map((mark) => mark.line));
  spec.height = 24 * lines.length + 20;
  for (const layer of spec.layer) {
    const { y } = layer.encoding;
    y.sort = lines;
    y.axis = { ...y.axis, labelLimit: Math.min(320, 0.45 * panel.box.clientWidth) };
  }
}

// The least width of a chart of squares.
function specifyGrid(panel, spec, marks) {
  const sizes = marks.map((mark) => mark.mean), { better, within } = panel.chart, range = shades(better);
  const domain = [within[0] ?? Math.min(...sizes), Math.max(within[1] ?? -Infinity, ...sizes)];
  panel.lightInk = (value) => {
    const [low, high] = domain, part = high > low ? (Math.min(high, Math.max(low, value)) - low) / (high - low) : 0.5;
    const parts = [1, 3, 5].map((at) => [0, 1].map((end) => parseInt(range[end].slice(at, at + 2), 16))).map(([from, to]) => from + (to - from) * part);
    return 0.299 * parts[0] + 0.587 * parts[1] + 0.114 * parts[2] < 125;
  };
  const color = spec.layer[0].encoding.color;
  const ends = { high: "more is better: the bluer, the more is kept", low: "less is better: the bluer, the more is kept" }[better];
  color.title = folded(panel.chart.measured_title + (ends ? ` (${ends})` : ""), panel.box.querySelector(".view").clientWidth - 150);
  color.scale = { domain, range, clamp: true };
  color.legend = { ...color.legend, ...(sizes.every(Number.isInteger) ? { tickMinStep: 1, format: "d" } : {}) };
  spec.height = 24 * unique(marks.map((mark) => mark.y)).length + 90;
  return 30 * unique(marks.map((mark) => mark.x)).length + 150;
}

// Titles, colours, and what hovering says.
function specifyAxes(panel, spec) {
  const { chart } = panel, wide = panel.box.querySelector(".view").clientWidth - 70, named = panel.chosen[chart.named_by], [what, by] = panel.scale === "wide" && named ? named.split(/, by (?!.*, by )/) : [named];
  const lines = unique([...panel.shownMarks.map((mark) => mark.line), ...panel.shownLevels.map((level) => level.shown)]);
  const grey = dark() ? "#aab2bd" : "#555d66", colours = lines.map((line) => (line.startsWith("\u0000") ? grey : panel.colours[line] || shown("#888888")));
  const meets = panel.shownMarks.some((mark) => panel.meetings.has(mark)), beside = panel.shownLevels.length;
  for (const layer of spec.layer) {
    const { color, x, y, tooltip } = layer.encoding;
    if (what && y.title) y.title = what;
    if (by && x.title) x.title = by;
    for (const [axis, room] of [[x, wide], [y, 300]]) if (axis.title) axis.title = folded(axis.title, room);
    if (tooltip) layer.encoding.tooltip = tooltip.filter(({ field }) => (field !== "keys" || chart.networks) && (field !== "also" || meets) && (field !== "beside" || beside));
    if (color && ["line", "shown"].includes(color.field)) color.scale = { domain: lines, range: colours };
    if (color && color.value === "@grey@") color.value = grey;
  }
}
