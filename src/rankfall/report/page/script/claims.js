// ---- claims ----

function claims() {
  if (!DATA.claims) return;
  const rank = { contradicted: 0, "holds only in part": 1, holds: 2, undecided: 3 };
  const marks = { holds: "✓ holds", "holds only in part": "◐ holds only in part", contradicted: "✗ contradicted", undecided: "– undecided" };
  const colours = { holds: "holds", "holds only in part": "unmeasured", contradicted: "misses", undecided: "unmeasured" };
  const rows = records(DATA.claims).sort((a, b) => rank[a.verdict] - rank[b.verdict]);
  const chart = DATA.charts.find((one) => one.name === "evidence"), get = chart && columns(chart.data), lacking = chart && columns(chart.lacking);
  const show = (row) => {
    const box = byId("chart-evidence"), wanted = [["claim", row.claim], ["quantity", row.shown]];
    for (const [name, value] of wanted) {
      const menu = box.querySelector(`[data-choose="${name}"]`);
      if (!menu) VIEW.set(`evidence.${name}`, value); // the chart is made when it comes into view
      else if ([...menu.options].some((one) => one.value === value)) {
        menu.value = value;
        menu.dispatchEvent(new Event("change"));
      }
    }
    box.scrollIntoView();
  };
  // The rows of the table `evidence` that a verdict rests on, one a number and seed.
  const rest = (row) => {
    const names = ["quantity", "line", "x", "seed", "value"], found = [];
    for (let at = 0; at < chart.data.rows; at++) if (get.claim(at) === row.claim) found.push(Object.fromEntries(names.map((name) => [name, get[name](at)])));
    for (let at = 0; at < chart.lacking.rows; at++) if (lacking.claim(at) === row.claim) found.push({ quantity: lacking.quantity(at), line: lacking.line(at), x: null, seed: null, value: null, why: lacking.why(at) });
    const heads = [...names.map((name) => ({ title: name, get: (one) => one[name] })), ...(found.some((one) => one.why) ? [{ title: "why there is no number", get: (one) => one.why }] : [])];
    const of = make("select", {}, make("option", { value: "" }, "all"), ...unique(found.map((one) => one.quantity)).map((name) => make("option", {}, name)));
    const table = make("table"), count = make("p", { class: "hint", role: "status" });
    const view = sortable(table, heads, [], { most: TABLE_ROWS });
    const chosen = () => found.filter((one) => !of.value || one.quantity === of.value);
    const fill = () => {
      view.show(chosen());
      count.textContent = plural(chosen().length, "row") + (chosen().length > TABLE_ROWS ? `, the first ${TABLE_ROWS} of them here; all in the CSV` : "");
    };
    of.addEventListener("change", fill);
    fill();
    const save = () => saved(`${row.claim}.csv`, csv([...names, "why"], chosen().map((one) => [...names, "why"].map((name) => one[name]))), "text/csv");
    opened(`Rows of the claim ${row.claim.replaceAll("_", " ")}`, make("p", {}, row.said), make("p", { class: "controls" }, make("label", {}, "quantity", of), make("button", { type: "button", onclick: save }, "CSV of these rows")), count,
      make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Rows" }, table));
  };
  const networks = (row) => row.cells.split(" ").map((key) => BY_KEY.get(key)).filter(Boolean);
  const button = (what, about, onclick) => make("button", { type: "button", "aria-label": `${what} of ${about.claim.replaceAll("_", " ")}`, onclick }, what);
  const leads = (row) => {
    const cells = networks(row), known = chart && row.shown;
    const parts = known ? [button("chart", row, () => show(row)), button("rows", row, () => rest(row))] : [];
    if (cells.length) parts.push(button(plural(cells.length, "network"), row, () => showCells(`Networks of the claim ${row.claim.replaceAll("_", " ")}`, cells)));
    for (const name of DATA.pictures[row.claim] || []) parts.push(make("a", { href: `../figures/${name}.png` }, `figure ${name}`));
    return make("td", { class: "leads" }, ...parts.flatMap((part) => [part, " "]));
  };
  const heads = [
    { title: "verdict", get: (row) => row.verdict, cell: (row) => make("td", { class: colours[row.verdict] }, marks[row.verdict]) },
    { title: "claim", get: (row) => row.says, cell: (row) => make("td", {}, row.says, " ", make("a", { href: row.link, title: `${row.paper}; read: ${row.seen}` }, row.paper.split(":")[0])) },
    { title: "what was found", get: (row) => row.said, cell: (row) => make("td", {}, row.said, row.extends ? make("p", {}, row.extends) : null, row.wants ? ` To decide it: ${row.wants}` : "", row.defects ? make("details", {}, make("summary", {}, "in the published code"), row.defects) : null) },
    { title: "number", get: (row) => row.number, cell: (row) => make("td", {}, row.number === null ? "" : written(row.number), row.low === row.high ? null : make("span", { class: "spread" }, ` ${written(row.low, 2)} to ${written(row.high, 2)}`)) },
    { title: "seeds", get: (row) => row.seeds },
    { title: "when it counts as true", get: (row) => row.threshold, cell: (row) => make("td", {}, row.threshold, row.changed ? make("p", { class: "changed" }, `Changed after numbers were seen: ${row.changed}`) : null) },
    { title: "measured here", get: (row) => row.setting },
    { title: "what it rests on", get: (row) => row.claim, cell: leads },
  ];
  verdictTable("claims", "claim", Object.keys(rank), heads, rows, ["verdict"], (row) => `${row.claim} ${row.says} ${row.paper} ${row.said} ${row.extends}`);
}
