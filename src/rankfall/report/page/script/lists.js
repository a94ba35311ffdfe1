// ---- tables whose headings sort ----

// `heads`: {title, get(row), cell(row)?, about?}. One stop of the Tab key: arrow keys move among headings and buttons.
function sortable(table, heads, rows, { sort = null, most = Infinity, head = null, sorted = null } = {}) {
  const state = { at: sort ? sort[0] : null, down: sort ? sort[1] : false };
  const body = make("tbody"), line = make("tr");
  heads.forEach((one, at) => {
    const button = make("button", { type: "button", title: one.about || null, onclick: () => {
      state.down = state.at === at ? !state.down : Boolean(one.down);
      state.at = at;
      fill();
      if (sorted) sorted(one, state.down);
    } }, one.title);
    line.append(make("th", { scope: "col" }, button));
  });
  table.replaceChildren(make("thead", {}, head, line), body);
  const compare = (a, b) => {
    if (blank(a) || blank(b)) return blank(a) - blank(b);
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
    return state.down ? -order : order;
  };
  const buttons = () => [...table.rows].map((row) => [...row.querySelectorAll("button, a")]).filter((row) => row.length);
  let stop = null;
  function fill() {
    line.childNodes.forEach((cell, at) => (at === state.at ? cell.setAttribute("aria-sort", state.down ? "descending" : "ascending") : cell.removeAttribute("aria-sort")));
    const kept = state.at === null ? rows : [...rows].sort((a, b) => compare(heads[state.at].get(a), heads[state.at].get(b)));
    body.replaceChildren(...kept.slice(0, most).map((row) => make("tr", {}, ...heads.map((one) => (one.cell ? one.cell(row) : make("td", {}, written(one.get(row))))))));
    if (stop) stop();
  }
  fill();
  stop = table.roved ? table.roved : (table.roved = rove(table, buttons));
  stop();
  return { show(next) { rows = next; fill(); } };
}

// A table of verdicts, of which menus (by a field of a row) and a text choose rows; what is chosen stands in the address.
function verdictTable(name, what, outcomes, heads, rows, fields, texts) {
  const view = sortable(byId(`${name}-table`), heads, rows), controls = [...fields, "text"].map((field) => [field, byId(`${name}-${field === "text" ? "search" : field}`)]);
  const filter = () => {
    const fits = (row, [field, { value }]) => !value || (field === "text" ? texts(row).toLowerCase().includes(value.toLowerCase()) : row[field] === value);
    const kept = rows.filter((row) => controls.every((control) => fits(row, control)));
    const counts = outcomes.map((one) => `${one} ${kept.filter((row) => row.verdict === one).length}`);
    byId(`${name}-count`).textContent = `${kept.length} of ${plural(rows.length, what)}: ${counts.join(", ")}`;
    view.show(kept);
  };
  for (const [field, one] of controls) {
    const asked = VIEW.get(`${name}.${field}`);
    if (asked) one.value = asked;
    one.addEventListener("input", () => { VIEW.set(`${name}.${field}`, one.value); filter(); });
  }
  filter();
}
