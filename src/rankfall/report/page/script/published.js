// ---- published numbers ----

function published() {
  if (!DATA.reproduction) return;
  const verdict = (row) => (row.holds === null ? "not measured" : row.holds ? "holds" : "misses");
  const distance = (row) => {
    if (row.ours === null) return -1;
    if (row.sense === "magnitude") return Math.abs(Math.log10(Math.abs(row.ours / row.published))) / (row.tolerance || 0.05);
    if (row.sense === "floor") return row.ours / row.tolerance;
    return Math.abs(row.difference) / (row.tolerance || 0.05);
  };
  const rows = records(DATA.reproduction).map((row) => ({ ...row, verdict: verdict(row), distance: distance(row) }));
  const rank = { misses: 0, holds: 1, "not measured": 2 };
  rows.sort((a, b) => rank[a.verdict] - rank[b.verdict] || b.distance - a.distance);
  const why = (row) => {
    if (row.verdict === "not measured") return "nothing in this run measures it";
    const parts = [];
    if (row.failed) parts.push(`${plural(row.failed, "seed")} failed`);
    if (row.verdict === "misses") parts.push({ equal: "differs by more than the tolerance", magnitude: "differs by more decades than the tolerance", floor: "above the floor" }[row.sense] || `should be ${row.sense}`);
    if (row.at_published === false) parts.push("measured at another setting");
    return parts.join("; ");
  };
  const heads = [
    { title: "verdict", get: (row) => row.verdict, cell: (row) => make("td", { class: row.verdict === "not measured" ? "unmeasured" : row.verdict }, { holds: "✓ holds", misses: "✗ misses", "not measured": "– not measured" }[row.verdict]) },
    { title: "what", get: (row) => row.what }, { title: "source", get: (row) => `${row.source}, ${row.place}`, cell: (row) => make("td", {}, DATA.sources[row.source] ? make("a", { href: DATA.sources[row.source].link, title: DATA.sources[row.source].title }, DATA.sources[row.source].name) : row.source, `, ${row.place}`) }, { title: "published", get: (row) => row.published },
    { title: "ours", get: (row) => row.ours, cell: (row) => make("td", {}, written(row.ours), row.deviation ? make("span", { class: "spread" }, " ± " + written(row.deviation, 2)) : null) },
    { title: "how ours should lie", get: (row) => `${row.sense}, tolerance ${written(row.tolerance)}` }, { title: "seeds", get: (row) => row.seeds },
    { title: "our setting", get: (row) => row.setting }, { title: "remark", get: why },
  ];
  byId("published-source").append(...inOrder(unique(rows.map((row) => row.source))).map((name) => make("option", {}, name)));
  verdictTable("published", "comparison", ["holds", "misses", "not measured"], heads, rows, ["verdict", "source"], (row) => `${row.what} ${row.place} ${row.setting} ${row.name}`);
}
