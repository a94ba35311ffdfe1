// ---- a chart: its menus, and the numbers that they leave ----

const LINES = 16; // that a chart begins with: all can be chosen
const FAR = 1000; // values that span this factor beyond one
const TECHNICAL = ["definition", "dtype"]; // of interest only where there is a choice

class Panel {
  // `plain`: without menus, as the page's first picture.
  constructor(box, chart, { plain = false } = {}) {
    Object.assign(this, { box, chart, plain, get: columns(chart.data), off: new Set(), chosen: {}, mode: "mean", scale: chart.scale, menus: [], fixed: [], colours: {} });
    this.field = (name) => this.fieldOf(this.get, name);
    this.lineOf = this.linesOf(this.get);
    this.x = chart.kind === "points" ? this.lineOf : this.get[chart.x];
    this.y = this.get[chart.measured];
    if (plain) this.begin(box.dataset.setting); else this.recall();
    this.controls();
    this.choose(0);
  }
  // A column, or a field of the cell that a row is of.
  fieldOf(get, name) {
    return get.cell && !get[name] ? (row) => CELLS[get.cell(row)][name] : get[name];
  }
  // The line of a row.
  linesOf(get) {
    return this.fieldOf(get, get.cell && this.chart.line === "architecture" ? "label" : this.chart.line);
  }
  // The menus of a setting.
  begin(setting) {
    const cell = CELLS.find((one) => one.setting === setting);
    this.asked = cell ? Object.fromEntries(this.chart.choose.map((name) => [name, name in cell ? (blank(cell[name]) ? "none" : written(cell[name])) : null])) : {};
    this.only = [];
  }
  // The axis of values. `wide`: by logarithms where a few values are far larger than the others.
  axis(marks) {
    if (this.scale !== "wide") return this.scale;
    const sizes = marks.map((mark) => Math.abs(mark.mean)).sort((a, b) => a - b), most = sizes.at(-1) || 0;
    return most > FAR * Math.max(1, sizes[sizes.length >> 1] || 0) || most > 10 * FAR ? "symlog" : "linear";
  }
  view(name) {
    return `${this.chart.name}.${name}`;
  }
  // What the address says.
  recall() {
    this.asked = Object.fromEntries(this.chart.choose.map((name) => [name, VIEW.get(this.view(name))]));
    if (VIEW.get(this.view("seeds")) === "each") this.mode = "each";
    if (["linear", "log"].includes(VIEW.get(this.view("scale"))) && this.chart.kind === "lines" && !["symlog", "wide"].includes(this.chart.scale)) this.scale = VIEW.get(this.view("scale"));
    this.only = VIEW.all(this.view("line"));
  }
  remember() {
    if (this.plain) return;
    for (const menu of this.menus) VIEW.set(this.view(menu.name), blank(this.chosen[menu.name]) ? "none" : written(this.chosen[menu.name]));
    VIEW.set(this.view("seeds"), this.mode === "each" ? "each" : null);
    VIEW.set(this.view("scale"), this.scale === this.chart.scale ? null : this.scale);
    const on = this.lines ? this.lines.filter((line) => !this.off.has(line)) : [], usual = this.lines && on.join("\n") === this.lines.slice(0, LINES).join("\n");
    VIEW.set(this.view("line"), !this.lines || usual ? null : on.length ? on : "-");
  }
  seeds() {
    const get = this.field("seed"), found = new Set();
    for (let row = 0; get && row < this.chart.data.rows; row++) found.add(get(row));
    return found.size;
  }
  // The rows that the menus leave, of the chart's own or of others that are drawn beside them (whose nulls are anything).
  rows(encoded = this.chart.data, get = this.get) {
    const tests = this.menus.map((menu) => [this.fieldOf(get, menu.name), this.chosen[menu.name]]).filter(([of]) => of);
    const kept = [], own = get === this.get;
    for (let row = 0; row < encoded.rows; row++) if (tests.every(([of, wanted]) => of(row) === wanted || (!own && blank(of(row))))) kept.push(row);
    return kept;
  }
  controls() {
    const holder = this.box.querySelector(".controls");
    for (const name of this.chart.choose) {
      const get = this.field(name), all = new Set();
      if (!get) continue;
      for (let row = 0; row < this.chart.data.rows && all.size < 2; row++) all.add(get(row));
      const title = DATA.menus[name] || name.replaceAll("_", " ");
      if (all.size < 2) {
        const [only] = all;
        this.chosen[name] = only;
        if (!blank(only) && !TECHNICAL.includes(name)) this.fixed.push(`${title}: ${written(only)}`); // nothing to choose, but to know
        continue;
      }
      const select = make("select", { "data-choose": name, onchange: () => { this.chosen[name] = menu.values[select.selectedIndex]; this.choose(at + 1); this.remember(); } });
      const at = this.menus.length, menu = { name, title, select, values: [], label: make("label", {}, title, select) };
      this.menus.push(menu);
      holder.append(menu.label);
    }
    if (this.plain) return holder.replaceChildren();
    const menu = (name, title, values, now, change) => {
      const select = make("select", { [name]: "", onchange: () => { change(select.value); this.draw(); this.remember(); } }, ...values.map(([value, text]) => make("option", { value }, text)));
      select.value = now;
      holder.append(make("label", {}, title, select));
    };
    if (this.chart.kind !== "grid" && this.seeds() > 1) menu("data-mode", "seeds", [["mean", "mean and deviation"], ["each", "every seed"]], this.mode, (value) => (this.mode = value));
    if (this.chart.kind === "lines" && !["symlog", "wide"].includes(this.chart.scale)) menu("data-scale", "scale", [["linear", "linear"], ["log", "logarithmic"]], this.scale, (value) => (this.scale = value));
    holder.append(make("button", { type: "button", "data-save": "", onclick: () => this.save() }, "CSV of what is shown"), linkButton(this.box.id));
  }
  // Menus from number `from` on are filled with what there is, given those before; the value with most lines is taken, or kept.
  choose(from) {
    let kept = [];
    for (let row = 0; row < this.chart.data.rows; row++) kept.push(row);
    this.menus.forEach((menu, at) => {
      const get = this.field(menu.name);
      if (at >= from) {
        const lines = new Map();
        for (const row of kept) { const value = get(row); (lines.get(value) || lines.set(value, new Set()).get(value)).add(this.lineOf(row)); }
        menu.values = inOrder([...lines.keys()]);
        menu.select.replaceChildren(...menu.values.map((value) => make("option", {}, blank(value) ? "none" : written(value))));
        menu.label.hidden = menu.values.length === 1 && blank(menu.values[0]); // of the others this network has no more settings
        const asked = this.asked && this.asked[menu.name], start = this.chart.start[menu.name];
        const wanted = asked ? menu.values.find((value) => (blank(value) ? "none" : written(value)) === asked) : undefined;
        if (wanted !== undefined) { this.chosen[menu.name] = wanted; this.asked[menu.name] = null; }
        if (this.chosen[menu.name] === undefined && menu.values.includes(start)) this.chosen[menu.name] = start;
        if (!menu.values.includes(this.chosen[menu.name])) this.chosen[menu.name] = menu.values.reduce((best, one) => (lines.get(one).size >= lines.get(best).size ? one : best), menu.values[0]);
        menu.select.selectedIndex = menu.values.indexOf(this.chosen[menu.name]);
      }
      kept = kept.filter((row) => get(row) === this.chosen[menu.name]);
    });
    this.off.clear();
    if (this.chart.kind !== "grid") {
      const names = this.namesOfLines(), asked = this.only && this.only.length;
      names.filter((line, at) => (asked ? !this.only.includes(line) : at >= LINES)).forEach((line) => this.off.add(line));
      this.only = null;
    }
    this.draw();
  }
  // Marks: means over seeds, or every network.
  marks() {
    const groups = new Map();
    for (const row of this.rows()) {
      const y = this.y(row), line = this.lineOf(row);
      if (typeof y !== "number" || this.off.has(String(line))) continue;
      const x = this.x(row), cell = this.get.cell ? CELLS[this.get.cell(row)] : null;
      const seed = cell ? cell.key : this.get.seed ? this.get.seed(row) : "";
      const of = this.chart.kind === "grid" ? this.get[this.chart.y](row) : line;
      const group = this.mode === "each" ? `${of}\n${seed}` : String(of), place = `${group}\n${x}`;
      let mark = groups.get(place);
      if (!mark) groups.set(place, (mark = { x, y: of, line: String(line), group, numbers: [], cells: [] }));
      mark.numbers.push(y);
      if (cell && !mark.cells.includes(cell)) mark.cells.push(cell);
    }
    const [least, most] = this.chart.within.map((end, at) => (end === null ? (at ? Infinity : -Infinity) : end)); // what is possible
    return [...groups.values()].map((mark) => {
      const n = mark.numbers.length, mean = mark.numbers.reduce((sum, one) => sum + one, 0) / n;
      const deviation = n > 1 ? Math.sqrt(mark.numbers.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (n - 1)) : 0;
      const low = Math.min(mean, Math.max(mean - deviation, least, this.scale === "log" ? mean * 0.01 : -Infinity));
      const keys = mark.cells.map((cell) => cell.key);
      const value = written(this.chart.kind === "grid" ? Number(mean.toFixed(3)) + 0 : mean);
      return { ...mark, mean, n, deviation, low, high: Math.max(mean, Math.min(mean + deviation, most)), value, keys: keys.length > 2 ? `${keys.slice(0, 2).join(", ")} and ${keys.length - 2} more` : keys.join(", "),
        band: this.mode === "each" || n < 2 ? "one number" : `± ${written(deviation)} over ${n} seeds` };
    }).filter((mark) => this.scale !== "log" || mark.mean > 0).sort((a, b) => (a.group < b.group ? -1 : a.group > b.group ? 1 : a.x < b.x ? -1 : 1));
  }
  // Chance, the whole network and the like: a level for each of its lines, or one for all, that they are compared with.
  levels(marks) {
    const groups = new Map(), xs = marks.map((mark) => mark.x), ends = [Math.min(...xs), Math.max(...xs)];
    const add = (about, line, x, value) => {
      if (typeof value !== "number" || !Number.isFinite(value) || this.off.has(line) || (this.scale === "log" && value <= 0)) return;
      const of = about.shared && this.chart.kind === "lines" ? "" : line, key = `${about.name}\n${of}\n${x}`;
      if (!groups.has(key)) groups.set(key, { name: about.name, line: of, x, numbers: [] });
      groups.get(key).numbers.push(value);
    };
    for (const about of marks.length ? this.chart.beside : []) {
      if (about.column) for (const row of this.rows()) add(about, String(this.lineOf(row)), this.chart.kind === "lines" ? this.x(row) : null, this.get[about.column](row));
      else {
        const get = columns(about.rows), line = this.linesOf(get);
        for (const row of this.rows(about.rows, get)) add(about, String(line(row)), null, get[this.chart.measured](row));
      }
    }
    const found = [...groups.values()].map(({ numbers, ...one }) => ({ ...one, group: `${one.name}\n${one.line}`, mean: numbers.reduce((sum, value) => sum + value, 0) / numbers.length }));
    const spanned = found.flatMap((one) => (one.x === null && this.chart.kind === "lines" ? ends.map((x) => ({ ...one, x })) : [one])).sort((a, b) => a.x - b.x);
    const last = new Map(spanned.map((one) => [one.group, one]));
    return spanned.map((one) => ({ ...one, shown: one.line || `\u0000${one.name}`, label: last.get(one.group) === one && !one.line ? `${one.name} ${written(one.mean, 3)}` : "" }));
  }
  namesOfLines() {
    return inOrder(unique(this.rows().map((row) => String(this.lineOf(row)))));
  }
  chips() {
    const holder = this.box.querySelector(".chips");
    if (this.chart.kind === "grid") return holder.remove();
    this.lines = this.namesOfLines();
    this.colours = paint(this.lines);
    const whole = (title, names) => make("button", { type: "button", "data-lines": title, onclick: () => { this.off = new Set(names); this.draw(); this.remember(); focused(title); } }, title);
    const focused = (title) => holder.querySelector(`[data-lines=${title}]`).focus();
    const both = this.lines.length > 3 && !this.plain ? [whole("all", []), whole("none", this.lines)] : [];
    holder.replaceChildren(...both, ...this.lines.map((line) => {
      const swatch = make("span", { class: "swatch", "aria-hidden": "true" });
      swatch.style.background = this.colours[line];
      return make("button", { type: "button", "data-line": line, "aria-pressed": String(!this.off.has(line)), onclick: (event) => {
        this.off.has(line) ? this.off.delete(line) : this.off.add(line);
        event.currentTarget.setAttribute("aria-pressed", String(!this.off.has(line)));
        this.draw(true);
        this.remember();
      } }, swatch, line);
    }));
    if (!holder.roved) holder.roved = rove(holder, () => [[...holder.querySelectorAll("button")]]);
    holder.roved();
  }
  draw(keepChips = false) {
    if (!keepChips && this.box.querySelector(".chips")) this.chips();
    const marks = (this.shownMarks = this.marks());
    this.shownLevels = this.levels(marks);
    this.meetings = meetings(marks, this.axis(marks));
    this.say(marks);
    if (!this.plain) this.numbers(marks);
    this.pending = drawChart(this, marks);
  }
  numbers(marks) {
    const holder = this.box.querySelector(".numbers"), details = holder.parentElement;
    const fill = () => {
      const table = make("table"), grid = this.chart.kind === "grid";
      const heads = [{ title: grid ? this.chart.y_title : this.chart.line.replaceAll("_", " "), get: (mark) => (grid ? mark.y : mark.line) }];
      if (this.chart.kind !== "points") heads.push({ title: this.chart.x_title, get: (mark) => mark.x });
      heads.push({ title: this.chosen[this.chart.named_by] || this.chart.measured_title, get: (mark) => mark.mean });
      if (!grid) heads.push({ title: "standard deviation", get: (mark) => (mark.n > 1 ? mark.deviation : null) }, { title: "seeds", get: (mark) => mark.n });
      for (const name of unique(this.shownLevels.map((level) => level.name))) heads.push({ title: name, get: (mark) => this.level(name, mark) });
      if (this.chart.networks) heads.push({ title: "networks", get: (mark) => mark.cells.length, cell: (mark) => make("td", {}, make("button", { type: "button", onclick: () => this.open([mark]) }, `show ${mark.cells.length}`)) });
      sortable(table, heads, marks, { most: TABLE_ROWS });
      const note = marks.length > TABLE_ROWS ? [make("p", { class: "hint" }, `The first ${TABLE_ROWS} of ${marks.length}.`)] : [];
      holder.replaceChildren(make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": `Numbers of ${this.chart.title}` }, table), ...note);
    };
    details.ontoggle = () => details.open && fill();
    if (details.open) fill(); else holder.replaceChildren();
  }
  // What stands beside a mark: chance at its x, or that of its line.
  level(name, mark) {
    const own = this.shownLevels.filter((one) => one.name === name && (!one.line || one.line === mark.line));
    const found = own.find((one) => one.x === mark.x) || own.find((one) => one.x === null) || (unique(own.map((one) => one.mean)).length === 1 ? own[0] : null);
    return found ? found.mean : null;
  }
  besides(mark) {
    return unique(this.shownLevels.map((level) => level.name)).map((name) => [name, this.level(name, mark)]).filter(([, value]) => value !== null).map(([name, value]) => `${name} ${written(value, 3)}`).join("; ");
  }
  // A mark in words: its line, place, value, deviation, and what it is compared with.
  words(mark) {
    const grid = this.chart.kind === "grid";
    const at = this.chart.kind === "points" ? "" : `, ${this.chart.x_title} ${written(mark.x)}`;
    const beside = this.besides(mark);
    return `${grid ? mark.y : mark.line}${at}: ${mark.value}${grid || mark.n < 2 || this.mode === "each" ? "" : " " + mark.band}${beside && "; " + beside}`;
  }
  // The networks of a point; where several lines meet, of each of them.
  open(marks) {
    const [first] = marks;
    if (marks.length === 1) return showCells(this.words(first), first.cells);
    const at = this.chart.kind === "points" ? "" : ` at ${this.chart.x_title} ${written(first.x)}`;
    const parts = marks.map((mark) => make("section", { class: "meeting" }, make("h3", {}, this.words(mark)), make("div", { class: "cells" }, ...mark.cells.slice(0, 60).map((cell) => cellButton(cell)))));
    return opened(`${marks.length} lines meet${at}`, ...parts);
  }
  save() {
    const grid = this.chart.kind === "grid", points = this.chart.kind === "points", levels = unique(this.shownLevels.map((level) => level.name));
    const names = [this.chart.line, ...(points ? [] : [this.chart.x]), this.chart.measured, ...levels, "deviation", "seeds", "cells"];
    const rows = this.shownMarks.map((mark) => [grid ? mark.y : mark.line, ...(points ? [] : [mark.x]), mark.mean, ...levels.map((name) => this.level(name, mark)), mark.n > 1 ? mark.deviation : null, mark.n, mark.cells.map((cell) => cell.key).join(" ")]);
    saved(`${this.chart.name}.csv`, csv(names, rows), "text/csv");
  }
  // What is shown, and what is not: lines that lie on each other, lines of other choices, values that there are not.
  say(marks) {
    const say = this.box.querySelector("[role=status]"), networks = new Set(marks.flatMap((mark) => mark.cells.map((cell) => cell.key))).size;
    if (this.plain) return (this.box.querySelector("[data-chosen]").textContent = this.described());
    const none = this.off.size && this.lines && this.off.size >= this.lines.length ? "Nothing to show: choose lines above." : "Nothing to show: on a logarithmic scale only values above 0 have a place.";
    const parts = [marks.length ? `${plural(marks.length, "point")}${networks ? ` of ${plural(networks, "network")}` : ""}.${this.chart.networks ? " Select a point for the networks behind it." : ""}` : none];
    if (this.fixed.length) parts.push(`Everywhere ${this.fixed.join(", ")}.`);
    for (const about of this.chart.beside.filter((one) => this.shownLevels.some((level) => level.name === one.name))) {
      if (this.chart.kind === "points") parts.push(`A grey bar: ${about.name}.`);
      else parts.push(about.shared ? `Grey, dotted: ${about.name}.` : `Dotted, in the colour of its line: ${about.name}.`);
    }
    const alike = this.chart.kind === "lines" ? hidden(marks, this.meetings, this.mode) : [];
    if (alike.length) parts.push(`Lines that lie on each other, drawn in turns: ${alike.map((lines) => lines.join(" = ")).join("; ")}.`);
    say.replaceChildren(parts.join(" "));
    const lacking = this.lacking();
    if (lacking) say.append(make("br"), lacking);
    const elsewhere = this.elsewhere();
    if (elsewhere.length) {
      say.append(make("br"), `${plural(elsewhere.length, this.chart.kind === "grid" ? "row" : "line")} only elsewhere: `);
      elsewhere.slice(0, 6).forEach(({ line, menus }, at) => say.append(make("button", { type: "button", class: "inline", "data-elsewhere": line, onclick: () => this.go(menus) }, `${line === "null" ? "none" : line} (${menus.map(({ menu, value }) => `${menu.title} ${blank(value) ? "none" : written(value)}`).join(", ")})`)));
      if (!say.roved) say.roved = rove(say, () => [[...say.querySelectorAll("button")]]);
      say.roved();
      if (elsewhere.length > 6) say.append(`and ${elsewhere.length - 6} more: choose above.`);
    }
  }
  // What the menus say, as a sentence.
  described() {
    return [...this.menus.map((menu) => [menu.title, this.chosen[menu.name]]).filter(([, value]) => !blank(value)).map(([title, value]) => `${title} ${written(value)}`), ...this.fixed.map((one) => one.replace(": ", " "))].join(", ");
  }
  // Lines that have numbers, but none at what is chosen: each with the menus that would have to change, as few as can be.
  elsewhere() {
    if (!this.menus.length || this.scale === "wide") return []; // of other experiments there is nothing to compare
    const shown = new Set(this.rows().map((row) => String(this.lineOf(row)))), found = new Map();
    const fields = this.menus.map((menu) => [menu, this.field(menu.name)]);
    for (let row = 0; row < this.chart.data.rows; row++) {
      const line = String(this.lineOf(row));
      if (shown.has(line)) continue;
      const menus = fields.filter(([menu, get]) => get(row) !== this.chosen[menu.name]).map(([menu, get]) => ({ menu, value: get(row) }));
      if (!found.has(line) || found.get(line).length > menus.length) found.set(line, menus);
    }
    return inOrder([...found.keys()]).map((line) => ({ line, menus: found.get(line) }));
  }
  go(menus) {
    for (const { menu, value } of menus) this.chosen[menu.name] = value;
    this.choose(0);
    this.remember();
  }
  // Values that the table lacks, by reason.
  lacking() {
    const { lacking } = this.chart, get = columns(lacking), reasons = new Map();
    if (!lacking.rows) return "";
    const line = this.linesOf(get);
    for (const row of this.rows(lacking, get)) {
      const why = get.why(row) || "the table has no value", at = reasons.get(why) || reasons.set(why, { count: 0, lines: new Set() }).get(why);
      at.count += 1;
      at.lines.add(String(line(row)));
    }
    return [...reasons].map(([why, { count, lines }]) => `${plural(count, "value")} of ${few([...lines])} cannot be drawn: ${why}.`).join(" ");
  }
}
