// ---- points of a chart, by mouse and by keyboard: one stop of the Tab key, arrow keys from point to point ----

const NEAR = 9; // pixels

// Where a mark is drawn, in pixels of the picture.
function placeOf(panel, mark) {
  const { view } = panel.result, padding = view.padding(), [left, top] = view.origin();
  const at = (name, value) => { const scale = view.scale(name); return scale(value) + (scale.bandwidth ? scale.bandwidth() / 2 : 0); };
  const { kind } = panel.chart;
  const x = kind === "points" ? at("x", mark.mean) : at("x", kind === "grid" ? String(mark.x) : mark.x);
  const y = kind === "lines" ? at("y", mark.mean) : at("y", kind === "grid" ? String(mark.y) : mark.line);
  return [x + left + (padding.left ?? padding), y + top + (padding.top ?? padding)];
}

function reachable(panel, inner) {
  const { chart, result } = panel, picture = inner.querySelector("svg, canvas"), marks = panel.shownMarks;
  if (!picture || !marks.length) return;
  picture.setAttribute("aria-hidden", "true"); // its points are told one by one
  const corner = picture.getBoundingClientRect(), outer = inner.getBoundingClientRect();
  const places = marks.map((mark) => placeOf(panel, mark));
  const near = ([x, y]) => marks.filter((_, at) => Math.hypot(places[at][0] - x, places[at][1] - y) <= NEAR);
  result.view.addEventListener("click", (event, item) => {
    const hit = item && item.datum && item.datum.at, box = picture.getBoundingClientRect();
    const found = chart.kind === "grid" ? [] : near([event.clientX - box.left, event.clientY - box.top]);
    const all = found.length ? found : hit !== undefined ? [marks[hit]] : [];
    if (all.length && chart.networks) panel.open(all);
  });
  // The point that has the focus: a button that moves.
  let now = 0;
  const here = make("button", { type: "button", class: "here", "data-point": "" });
  const says = panel.box.querySelector(".says");
  const move = (at, speak = true) => {
    now = at;
    here.style.left = `${places[at][0] + corner.left - outer.left}px`;
    here.style.top = `${places[at][1] + corner.top - outer.top}px`;
    here.setAttribute("aria-label", `${panel.words(marks[at])}. Point of the chart ${chart.title}: arrow keys move${chart.networks ? ", Enter shows its networks" : ""}.`);
    if (speak) says.textContent = panel.words(marks[at]) + also(marks[at]);
  };
  const also = (mark) => { const met = panel.meetings.get(mark) || []; return met.length ? `; at the same point: ${few(unique(met.map((one) => one.line)))}` : ""; };
  const along = (axis, kept) => { // the marks that an arrow key goes through, as they stand in the picture
    const all = marks.map((_, at) => at).filter((at) => kept(marks[at]));
    return all.sort((a, b) => places[a][axis] - places[b][axis] || a - b);
  };
  here.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [1, -1], ArrowDown: [1, 1], Home: [0, -Infinity], End: [0, Infinity] }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const [axis, by] = step, mark = marks[now], line = (one) => (chart.kind === "grid" ? one.y === mark.y : one.group === mark.group);
    const list = along(axis, axis ? (one) => chart.kind === "points" || one.x === mark.x : chart.kind === "points" ? (one) => one.line === mark.line : line);
    move(list[Math.max(0, Math.min(list.length - 1, list.indexOf(now) + by))]);
  });
  here.addEventListener("focus", () => move(now));
  here.addEventListener("blur", () => (says.textContent = ""));
  here.addEventListener("click", () => panel.open([marks[now], ...(panel.meetings.get(marks[now]) || [])]));
  move(0, false);
  inner.append(here);
}
