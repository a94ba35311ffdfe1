// ---- charts when they come into view, downloads, theme, start ----

const panels = [], openings = [];

function charts() {
  const named = Object.fromEntries(DATA.charts.map((chart) => [chart.name, chart]));
  const waiting = new Set(document.querySelectorAll("[data-chart], [data-opening]"));
  const begin = (box) => {
    if (!waiting.delete(box)) return;
    if (box.dataset.opening) openings.push(new Panel(box, named[box.dataset.opening], { plain: true }));
    else panels.push(new Panel(box, named[box.dataset.chart]));
  };
  const watch = new IntersectionObserver((entries) => entries.filter((one) => one.isIntersecting).forEach(({ target }) => begin(target)), { rootMargin: "400px" });
  waiting.forEach((box) => watch.observe(box));
  // Printing shows what is open and drawn, so the rest is drawn while nothing else happens, and at the latest when somebody prints.
  const later = window.requestIdleCallback || ((work) => setTimeout(work, 200));
  const next = async () => {
    const [box] = waiting;
    if (!box) return;
    begin(box);
    await Promise.all([...panels, ...openings].map((panel) => panel.pending));
    later(next);
  };
  later(next);
  addEventListener("beforeprint", () => [...waiting].filter((box) => !box.closest(".folded")).forEach(begin));
}

async function download(name) {
  const encoded = await unpacked("table-" + name), get = columns(encoded);
  let names = Object.keys(get), of = get;
  if (get.key && name !== "cells") { // what a cell is stands in the table of cells, once
    const cells = await unpacked("table-cells"), about = columns(cells), place = new Map();
    for (let row = 0; row < cells.rows; row++) place.set(about.key(row), row);
    names = [...DATA.cell_columns, ...names.filter((one) => one !== "key")];
    of = { ...get };
    for (const one of DATA.cell_columns) if (one !== "key") of[one] = (row) => about[one](place.get(get.key(row)));
  }
  const rows = Array.from({ length: encoded.rows }, (_, row) => names.map((one) => of[one](row)));
  saved(`${name}.csv`, csv(names, rows), "text/csv");
}

const redraw = () => [...panels, ...openings].forEach((panel) => panel.draw()); // chips and lines in colours for the other paper
byId("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = dark() ? "light" : "dark";
  redraw();
});
new ResizeObserver(([{ target }]) => document.documentElement.style.setProperty("--bar", `${target.offsetHeight - 1}px`)).observe(document.querySelector("header")); // where headings of tables stay
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
document.querySelectorAll("[data-csv]").forEach((button) => button.addEventListener("click", () => download(button.dataset.csv)));

for (const table of document.querySelectorAll("#downloads table")) rove(table, () => [...table.rows].map((row) => [...row.querySelectorAll("button, a")]).filter((row) => row.length));

(async () => {
  DATA = await unpacked("main");
  CELLS = records(DATA.cells);
  BY_KEY = new Map(CELLS.map((cell) => [cell.key, cell]));
  scorecard();
  comparePairs();
  published();
  claims();
  charts();
  document.documentElement.dataset.ready = "true";
  window.rankfall = { data: DATA, cells: CELLS, panels, paint, shades, showCell, inUnits, unfold, placeOf, view: VIEW };
  VIEW.go();
  if (VIEW.get("network")) showCell(VIEW.get("network"));
})();
