// ---- claims ----

function claims() {
  const table = byId("claims-table");
  if (!table || !DATA.claims) return;
  const rank = { contradicted: 0, "holds only in part": 1, holds: 2, undecided: 3 };
  const marks = { holds: "✓ holds", "holds only in part": "◐ holds only in part", contradicted: "✗ contradicted", undecided: "– undecided" };
  const colours = { holds: "holds", "holds only in part": "unmeasured", contradicted: "misses", undecided: "unmeasured" };
  const rows = records(DATA.claims).sort((a, b) => rank[a.verdict] - rank[b.verdict]);
  const show = (row) => {
    const menu = byId("chart-evidence").querySelector('[data-choose="claim"]');
    if (menu) {
      menu.value = row.claim;
      menu.dispatchEvent(new Event("change"));
    } else VIEW.set("evidence.claim", row.claim); // the chart is made when it comes into view
    byId("chart-evidence").scrollIntoView();
  };
  const heads = [
    { title: "verdict", get: (row) => row.verdict, cell: (row) => make("td", { class: colours[row.verdict] }, marks[row.verdict]) },
    { title: "claim", get: (row) => row.says, cell: (row) => make("td", {}, row.says, " ", make("a", { href: row.link, title: `${row.paper}; read: ${row.seen}` }, row.paper.split(":")[0])) },
    { title: "what was found", get: (row) => row.said, cell: (row) => make("td", {}, row.said, row.wants ? ` To decide it: ${row.wants}` : "", row.defects ? make("details", {}, make("summary", {}, "in the published code"), row.defects) : null) },
    { title: "number", get: (row) => row.number, cell: (row) => make("td", {}, row.number === null ? "" : written(row.number), row.low === row.high ? null : make("span", { class: "spread" }, ` ${written(row.low, 2)} to ${written(row.high, 2)}`)) },
    { title: "seeds", get: (row) => row.seeds },
    { title: "when it counts as true", get: (row) => row.threshold }, { title: "measured here", get: (row) => row.setting },
  ];
  if (DATA.charts.some((chart) => chart.name === "evidence")) heads.push({ title: "evidence", get: (row) => row.claim, cell: (row) => make("td", {}, make("button", { type: "button", onclick: () => show(row) }, "chart")) });
  const view = sortable(table, heads, rows);
  const choice = byId("claims-verdict"), search = byId("claims-search");
  for (const [name, one] of [["verdict", choice], ["text", search]]) {
    const asked = VIEW.get(`claims.${name}`);
    if (asked) one.value = asked;
    one.addEventListener("input", () => VIEW.set(`claims.${name}`, one.value));
  }
  const filter = () => {
    const text = search.value.toLowerCase();
    const kept = rows.filter((row) => (!choice.value || row.verdict === choice.value) && (!text || `${row.claim} ${row.says} ${row.paper} ${row.said}`.toLowerCase().includes(text)));
    const count = (name) => `${name} ${kept.filter((row) => row.verdict === name).length}`;
    byId("claims-count").textContent = `${kept.length} of ${plural(rows.length, "claim")}: ${Object.keys(rank).map(count).join(", ")}`;
    view.show(kept);
  };
  for (const one of [choice, search]) one.addEventListener("input", filter);
  filter();
}
