"use strict";
// The page's script: unpacks the data, draws charts with Vega-Lite, fills the scorecard, the published numbers and a cell's provenance.
(() => {
  const byId = (id) => document.getElementById(id);
  const LINES = 16; // that a chart begins with: all can be chosen
  const SCORES = 300; // rows of the scorecard at once
  const TECHNICAL = ["definition", "dtype"]; // of interest only where there is a choice
  const TABLE_ROWS = 400; // of a chart's numbers, in the page: all are in the CSV

  // ---- data ----

  async function inflated(id) {
    const text = byId("data-" + id).textContent;
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).text();
  }
  const unpacked = async (id) => JSON.parse(await inflated(id));

  // Columns as functions of a row's number: texts are places in a list.
  function columns(encoded) {
    const found = {};
    for (const [name, column] of Object.entries(encoded.columns)) {
      const { of, values } = column;
      found[name] = of ? (row) => of[values[row]] : (row) => values[row];
    }
    return found;
  }
  function records(encoded) {
    const get = columns(encoded), names = Object.keys(get);
    return Array.from({ length: encoded.rows }, (_, row) => Object.fromEntries(names.map((name) => [name, get[name](row)])));
  }

  // ---- small helpers ----

  function make(tag, attributes = {}, ...inside) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") node.className = value;
      else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined) node.setAttribute(name, value);
    }
    node.append(...inside.filter((part) => part !== null && part !== undefined));
    return node;
  }
  function written(value, digits = 4) {
    if (value === null || value === undefined) return "";
    if (typeof value !== "number") return String(value);
    if (Number.isInteger(value)) return String(value);
    const size = Math.abs(value);
    return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(digits - 1).replace(/\.?0+e/, "e") : String(Number(value.toPrecision(digits)));
  }
  const blank = (value) => value === null || value === undefined || value === "";
  const unique = (values) => [...new Set(values)];
  const inOrder = (values) => values.sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true })));
  const dark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  // Colours are made for white paper: on a dark one, dark ones are lightened.
  function shown(colour) {
    if (!dark() || !/^#[0-9a-f]{6}$/i.test(colour)) return colour;
    const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    const light = (0.299 * parts[0] + 0.587 * parts[1] + 0.114 * parts[2]) / 255;
    if (light > 0.45) return colour;
    const mix = light < 0.2 ? 0.75 : 0.4;
    return "#" + parts.map((part) => Math.round(part + (255 - part) * mix).toString(16).padStart(2, "0")).join("");
  }
  // Colour number `at` of any number: hues by the golden angle, so that neighbours are far apart, in three lightnesses.
  function hue(at) {
    const angle = at * 137.508, light = [0.4, 0.56, 0.27][at % 3], reach = 0.6 * Math.min(light, 1 - light);
    const part = (n) => light - reach * Math.max(-1, Math.min(((n + angle / 30) % 12) - 3, 9 - ((n + angle / 30) % 12), 1));
    return "#" + [part(0), part(8), part(4)].map((one) => Math.round(255 * one).toString(16).padStart(2, "0")).join("");
  }
  // An axis' title in lines of at most so many pixels.
  function folded(title, pixels) {
    const most = Math.max(12, Math.floor(pixels / 6.6)), lines = [""];
    for (const word of title.split(" ")) {
      const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
      if (longer.length > most && lines.at(-1)) lines.push(word); else lines[lines.length - 1] = longer;
    }
    return lines.length > 1 ? lines : title;
  }
  function saved(name, text, type) {
    const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  function csv(names, rows) {
    const field = (value) => {
      if (value === null || value === undefined) return "";
      const text = typeof value === "boolean" ? (value ? "True" : "False") : String(value);
      return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
    };
    return [names.map(field).join(","), ...rows.map((row) => row.map(field).join(","))].join("\n") + "\n";
  }

  // A table whose headings sort. `heads`: {title, get(row), cell(row)?, about?}.
  function sortable(table, heads, rows, { sort = null, most = Infinity, head = null } = {}) {
    const state = { at: sort ? sort[0] : null, down: sort ? sort[1] : false };
    const body = make("tbody"), line = make("tr");
    heads.forEach((one, at) => {
      const button = make("button", { type: "button", title: one.about || null, onclick: () => {
        state.down = state.at === at ? !state.down : Boolean(one.down);
        state.at = at;
        fill();
      } }, one.title);
      line.append(make("th", { scope: "col" }, button));
    });
    table.replaceChildren(make("thead", {}, head, line), body);
    const compare = (a, b) => {
      if (blank(a) || blank(b)) return blank(a) - blank(b);
      const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
      return state.down ? -order : order;
    };
    function fill() {
      line.childNodes.forEach((cell, at) => (at === state.at ? cell.setAttribute("aria-sort", state.down ? "descending" : "ascending") : cell.removeAttribute("aria-sort")));
      const kept = state.at === null ? rows : [...rows].sort((a, b) => compare(heads[state.at].get(a), heads[state.at].get(b)));
      body.replaceChildren(...kept.slice(0, most).map((row) => make("tr", {}, ...heads.map((one) => (one.cell ? one.cell(row) : make("td", {}, written(one.get(row))))))));
    }
    fill();
    return { show(next) { rows = next; fill(); } };
  }

  let DATA, CELLS, BY_KEY, PROVENANCE = null, BEHIND = null;

  // ---- a cell's provenance ----

  const dialog = byId("cell"), dialogBody = byId("cell-body");
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());

  const back = dialog.querySelector(".back");
  let before = []; // what the dialog showed, for its button `back`
  function opened(title, ...inside) {
    before = dialog.open ? [...before, { title: byId("cell-title").textContent, nodes: [...dialogBody.childNodes], top: dialog.scrollTop }] : [];
    filled(title, inside.filter(Boolean), 0);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  }
  function filled(title, nodes, top) {
    byId("cell-title").textContent = title;
    dialogBody.replaceChildren(...nodes);
    back.hidden = !before.length;
    dialog.scrollTop = top;
  }
  back.addEventListener("click", () => {
    const { title, nodes, top } = before.pop();
    filled(title, nodes, top);
    (before.length ? back : dialog.querySelector(".close")).focus();
  });
  const nameOf = (cell) => `${cell.label}, ${cell.task}, ${cell.training}, depth ${cell.depth}, seed ${cell.seed}`;
  const plural = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;
  const inUnits = (value, unit) => `${written(value, 8)} ${value === 1 && unit !== "ms" ? unit.replace(/s$/, "") : unit}`.trim();
  const keyButton = (cell) => make("button", { type: "button", "data-key": cell.key, "aria-label": `Provenance of ${nameOf(cell)}`, onclick: () => showCell(cell.key) }, cell.key.slice(0, 12));
  const breakable = (text) => text.split(/(?<=[+_-])/).flatMap((part) => [part, make("wbr")]);
  function listed(name, label, heads, rows) {
    const table = make("table", { class: name });
    sortable(table, heads, rows, { most: TABLE_ROWS });
    return make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label }, table);
  }
  const cellButton = (cell, what = cell.label) => make("button", { type: "button", "data-key": cell.key, onclick: () => showCell(cell.key) }, `${what} · seed ${cell.seed}`);

  async function showCell(key) {
    PROVENANCE = PROVENANCE || (await unpacked("provenance"));
    const cell = CELLS.find((one) => one.key === key), places = PROVENANCE.cells[key];
    const title = cell ? nameOf(cell) : key;
    if (!places) return opened(title, make("p", {}, `Cell ${key}: the store has no record of it.`));
    const about = Object.fromEntries(PROVENANCE.fields.map((name, at) => [name, PROVENANCE.values[name][places[at]]]));
    const snippet = about.snippet && about.snippet.replaceAll("@seed@", about.seed);
    const facts = {
      key, status: about.status + (about.reason ? ": " + about.reason : ""), task: about.task, architecture: about.architecture,
      training: about.training, seed: about.seed, steps: about.steps, "when it ended": about.final && Object.entries(about.final).map(([split, metrics]) => Object.entries(metrics).map(([name, value]) => `${split} ${name} ${written(value, 6)}`).join(", ")).join(", "),
      device: about.device, engine: about.engine, "number format": about.dtype, threads: about.threads, machine: about.host, processor: about.processor,
      versions: about.versions && Object.entries(about.versions).map(([name, version]) => `${name} ${version}`).join(", "),
      time: about.time, commit: about.commit, "seconds of training": about.seconds, "megabytes (peak)": about.megabytes, stack: about.stack, "data key": about.data_key,
    };
    const list = make("dl");
    for (const [name, value] of Object.entries(facts)) {
      if (value !== null && value !== undefined && value !== "") list.append(make("dt", {}, name), make("dd", {}, make("code", {}, written(value, 6))));
    }
    const parts = [list];
    if (snippet) {
      const status = make("span", { role: "status" });
      const copy = make("button", { type: "button", onclick: () => navigator.clipboard.writeText(snippet).then(() => (status.textContent = " copied"), () => (status.textContent = " select the text to copy it")) }, "copy");
      parts.push(make("h3", {}, "The configuration that computes it again ", copy, status), make("p", { class: "hint" }, "Save it as again.yaml, then: make run CONFIG=again.yaml"), make("pre", { tabindex: "0", class: "snippet" }, snippet));
    }
    parts.push(make("details", {}, make("summary", {}, "Specification"), make("pre", { tabindex: "0" }, JSON.stringify(about.spec, null, 1))));
    const code = Object.entries(about.code || {}).map(([file, digest]) => `${digest}  ${file}`);
    parts.push(make("details", {}, make("summary", {}, `Code that its numbers depend on: ${plural(code.length, "file")} with digests`), make("pre", { tabindex: "0", class: "code" }, code.join("\n"))));
    if (about.log) parts.push(make("details", {}, make("summary", {}, "End of the log of its job"), make("pre", { tabindex: "0", class: "log" }, about.log)));
    opened(title, ...parts);
  }

  function showCells(title, cells, ...before) {
    if (cells.length === 1 && !before.length) return showCell(cells[0].key);
    const alike = unique(cells.map((cell) => cell.setting)).length < 2;
    const list = make("div", { class: "cells" }, ...cells.slice(0, 200).map((cell) => cellButton(cell, alike ? cell.label : cell.setting)));
    return opened(title, ...before, make("h3", {}, plural(cells.length, "network")), list);
  }

  // ---- the scorecard ----

  function scorecard() {
    const table = byId("scorecard-table");
    if (!table || !DATA.scorecard) return;
    const choice = byId("score-setting"), every = records(DATA.scorecard);
    for (const setting of DATA.settings) choice.append(make("option", { value: setting }, setting));
    choice.addEventListener("change", () => scores(every, choice.value));
    scores(every, choice.value);
  }

  // The architectures of one setting: numbers of two are not compared.
  function scores(every, setting) {
    const table = byId("scorecard-table"), rows = every.filter((row) => row.setting === setting);
    const measured = (row, one) => (row[one.name + "_at"] ?? row[one.name + "_of"] ?? null) !== null;
    const heads = DATA.headlines.filter((one) => rows.some((row) => measured(row, one)));
    const label = (row) => (row.variant ? `${row.architecture} (${row.variant})` : row.architecture);
    const keeps = {};
    for (const one of heads) {
      keeps[one.name] = (value, by) => {
        const like = rows.filter((row) => row[one.name] !== null && (row[one.name + "_by"] ?? null) === by); // times of one engine
        const values = like.map((row) => Number(row[one.name].toFixed(one.digits))).sort((a, b) => a - b);
        if (value === null || !one.good) return 0;
        const round = Number(value.toFixed(one.digits)), below = values.findIndex((other) => other >= round), upto = values.filter((other) => other <= round).length;
        const rank = values.length < 2 ? 0.5 : (below + upto - 1) / 2 / (values.length - 1);
        return 0.04 + 0.4 * (one.good === "high" ? rank : 1 - rank);
      };
    }
    const studies = make("tr", {}, make("td"));
    for (const study of unique(heads.map((one) => one.study))) {
      studies.append(make("th", { scope: "colgroup", colspan: heads.filter((one) => one.study === study).length }, study === "use" ? "use and cost" : study));
    }
    const columnsOf = [{ title: "architecture", get: label, cell: (row) => make("th", { scope: "row" }, make("button", { type: "button", "data-made": label(row), title: "What it is made of", onclick: () => parts(row) }, ...breakable(label(row)))) }];
    function parts(row) {
      const list = make("dl"), own = CELLS.filter((cell) => cell.label === label(row) && cell.setting === setting);
      for (const [name, about] of Object.entries(DATA.made_of)) {
        if (row[name] !== null) list.append(make("dt", { title: about }, name.replaceAll("_", " ")), make("dd", {}, make("code", {}, row[name]), make("span", { class: "hint" }, ` ${about}`)));
      }
      const measured = make("dl");
      for (const one of heads) if (row[one.name] !== null) measured.append(make("dt", {}, one.title), make("dd", {}, inUnits(row[one.name], one.unit), make("span", { class: "hint" }, ` ${row[one.name + "_at"] || row[one.name + "_by"] || ""}`)));
      showCells(label(row), own, make("h3", {}, "Made of"), list, make("h3", {}, "Its numbers"), measured);
    }
    for (const one of heads) {
      columnsOf.push({ title: one.title, about: one.meaning, get: (row) => row[one.name], cell: (row) => {
        const value = row[one.name], spread = row[one.name + "_deviation"];
        const fixed = (number) => number.toFixed(one.digits).replace(/^-(0(\.0*)?)$/, "$1");
        const text = value === null ? (measured(row, one) ? "–" : "") : fixed(value);
        const more = spread !== null && Number(spread.toFixed(one.digits)) ? make("span", { class: "spread" }, " ± " + fixed(spread)) : null;
        const said = `${one.title} of ${label(row)}: ${value === null ? "none" : text}`;
        const button = make("button", { type: "button", "aria-label": said, "data-number": one.name, "data-row": label(row), onclick: () => number(one, row) }, text || "\u00a0", more);
        button.style.setProperty("--keeps", keeps[one.name](value, row[one.name + "_by"] ?? null).toFixed(3));
        return make("td", { class: value === null ? "none" : "" }, button);
      } });
    }
    async function number(one, row) {
      const value = row[one.name], spread = row[one.name + "_deviation"], seeds = row[one.name + "_seeds"], of = row[one.name + "_of"];
      const list = make("dl");
      const add = (name, text) => text !== null && text !== "" && list.append(make("dt", {}, name), make("dd", {}, String(text)));
      add("value", value === null ? "none" : inUnits(value, one.unit));
      add("standard deviation", spread === null ? null : written(spread, 4));
      add("seeds", (of ?? null) === null ? null : seeds === of ? of : `${seeds ?? 0} of ${of}`);
      add("seeds lost", row[one.name + "_lost"] ?? null);
      for (const [kind, about] of Object.entries(one.beside)) if (row[`${one.name}_${kind}`] !== null) add(kind, `${written(row[`${one.name}_${kind}`], 4)} (${about})`);
      add("measured on", row[one.name + "_at"] ?? setting);
      add("computed by", row[one.name + "_by"] ?? null);
      add("why there is none", row[one.name + "_reason"]);
      add("definition", one.meaning);
      add("comes from", `table ${one.table}: ${one.columns.join(", ")}`);
      const title = `${one.title}: ${label(row)}`, shown = (cell) => cell && cell.label === label(row) && cell.setting === setting;
      const holder = make("div", { "aria-live": "polite" });
      opened(title, list, holder);
      holder.append(...(await made(one, shown, every.indexOf(row), value)));
    }
    // What a number is made of: its networks, each with its number, and the rows of the table.
    async function made(one, shown, at, value) {
      BEHIND = BEHIND || (await unpacked("behind"));
      const about = BEHIND[one.name];
      if (!about) return [];
      const parts = [];
      if (about.networks) {
        const networks = records(about.networks).map((row) => ({ ...row, of: CELLS[row.cell] })).filter((row) => shown(row.of));
        if (networks.length) {
          const heads = [
            { title: "seed", get: (row) => row.of.seed }, { title: one.title, get: (row) => row.number, cell: (row) => make("td", {}, row.number === null ? `none: ${row.why || row.of.status}` : written(row.number, 8)) },
            { title: "network", get: (row) => row.of.key, cell: (row) => make("td", {}, keyButton(row.of)) },
          ];
          parts.push(make("h3", {}, plural(networks.length, "network")), make("p", { class: "hint" }, (value === null ? "" : networks.length > 1 ? "The value is the mean of these. " : "") + "Select a network for its provenance: configuration, code, machine, log."), listed("networks", `Networks of ${one.title}`, heads, networks));
        }
      }
      const places = about.networks ? about.rows : [about.rows[at]].filter((place) => place !== null);
      if (!byId("data-table-" + one.table)) return [...parts, make("p", {}, "The rows of the table that it is made of are in ", make("a", { href: `../tables/${one.table}.parquet` }, `${one.table}.parquet`), ", which is too large to be in this page.")];
      const encoded = await unpacked("table-" + one.table), get = columns(encoded);
      const own = get.key && about.networks ? places.filter((place) => shown(BY_KEY.get(get.key(place)))) : places;
      if (!own.length) return parts;
      const cell = get.key ? [{ title: "seed", get: (place) => BY_KEY.get(get.key(place)).seed }, { title: "network", get: get.key, cell: (place) => make("td", {}, keyButton(BY_KEY.get(get.key(place)))) }] : [];
      const heads = [...cell, ...one.columns.filter((name) => get[name]).map((name) => ({ title: name.replaceAll("_", " "), get: get[name], cell: (place) => make("td", {}, written(get[name](place), 8)) }))];
      const names = [...(get.key ? ["key", "seed"] : []), ...Object.keys(get).filter((name) => name !== "key")];
      const text = () => csv(names, own.map((place) => names.map((name) => (get.key && name === "seed" ? BY_KEY.get(get.key(place)).seed : get[name](place)))));
      const save = make("button", { type: "button", "data-rows": "", onclick: () => saved(`${one.name}.csv`, text(), "text/csv") }, "CSV with all columns");
      parts.push(make("h3", {}, `${plural(own.length, "row")} of the table ${one.table} `, save), listed("rows", `Rows of ${one.title}`, heads, own));
      if (own.length > TABLE_ROWS) parts.push(make("p", { class: "hint" }, `The first ${TABLE_ROWS} are shown.`));
      return parts;
    }
    const first = heads.findIndex((one) => one.name === "residual_last") + 1;
    const view = sortable(table, columnsOf, rows, { sort: [Math.max(first, 0), false], head: studies, most: SCORES });
    const search = byId("score-search");
    const filter = () => {
      const text = search.value.toLowerCase(), kept = rows.filter((row) => label(row).toLowerCase().includes(text));
      byId("score-count").textContent = `${kept.length} of ${plural(rows.length, "row")}` + (kept.length > SCORES ? `, the first ${SCORES} are shown: type a part of a name` : "");
      view.show(kept);
    };
    search.oninput = filter;
    filter();
  }

  // ---- published numbers ----

  function published() {
    const table = byId("published-table");
    if (!table || !DATA.reproduction) return;
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
      { title: "what", get: (row) => row.what }, { title: "source", get: (row) => `${row.source}, ${row.place}` }, { title: "published", get: (row) => row.published },
      { title: "ours", get: (row) => row.ours, cell: (row) => make("td", {}, written(row.ours), row.deviation ? make("span", { class: "spread" }, " ± " + written(row.deviation, 2)) : null) },
      { title: "how ours should lie", get: (row) => `${row.sense}, tolerance ${written(row.tolerance)}` }, { title: "seeds", get: (row) => row.seeds },
      { title: "our setting", get: (row) => row.setting }, { title: "remark", get: why },
    ];
    const view = sortable(table, heads, rows);
    const choice = byId("published-verdict"), source = byId("published-source"), search = byId("published-search");
    source.append(...inOrder(unique(rows.map((row) => row.source))).map((name) => make("option", {}, name)));
    const filter = () => {
      const text = search.value.toLowerCase();
      const kept = rows.filter((row) => (!choice.value || row.verdict === choice.value) && (!source.value || row.source === source.value) && (!text || `${row.what} ${row.place} ${row.setting} ${row.name}`.toLowerCase().includes(text)));
      const count = (name) => kept.filter((row) => row.verdict === name).length;
      byId("published-count").textContent = `${kept.length} of ${plural(rows.length, "comparison")}: holds ${count("holds")}, misses ${count("misses")}, not measured ${count("not measured")}`;
      view.show(kept);
    };
    for (const one of [choice, source, search]) one.addEventListener("input", filter);
    filter();
  }

  // ---- charts ----

  class Panel {
    constructor(box, chart) {
      Object.assign(this, { box, chart, get: columns(chart.data), off: new Set(), chosen: {}, mode: "mean", scale: chart.scale, menus: [], fixed: [] });
      const cell = this.get.cell;
      this.field = (name) => {
        if (cell && !this.get[name]) return (row) => CELLS[cell(row)][name];
        return this.get[name];
      };
      this.lineOf = cell && chart.line === "architecture" ? (row) => CELLS[cell(row)].label : this.field(chart.line);
      this.x = chart.kind === "points" ? this.lineOf : this.get[chart.x];
      this.y = this.get[chart.measured];
      this.controls();
      this.choose(0);
    }
    seeds() {
      const get = this.field("seed"), found = new Set();
      for (let row = 0; get && row < this.chart.data.rows; row++) found.add(get(row));
      return found.size;
    }
    rows() { // those of the menus
      const tests = this.menus.map((menu) => [this.field(menu.name), this.chosen[menu.name]]);
      const kept = [];
      for (let row = 0; row < this.chart.data.rows; row++) if (tests.every(([get, wanted]) => get(row) === wanted)) kept.push(row);
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
        const select = make("select", { "data-choose": name, onchange: () => { this.chosen[name] = menu.values[select.selectedIndex]; this.choose(at + 1); } });
        const at = this.menus.length, menu = { name, select, values: [], label: make("label", {}, title, select) };
        this.menus.push(menu);
        holder.append(menu.label);
      }
      if (this.chart.kind !== "grid" && this.seeds() > 1) {
        const select = make("select", { "data-mode": "", onchange: () => { this.mode = select.value; this.draw(); } }, make("option", { value: "mean" }, "mean and deviation"), make("option", { value: "each" }, "every seed"));
        holder.append(make("label", {}, "seeds", select));
      }
      if (this.chart.kind === "lines" && this.chart.scale !== "symlog") {
        const select = make("select", { "data-scale": "", onchange: () => { this.scale = select.value; this.draw(); } }, make("option", { value: "linear" }, "linear"), make("option", { value: "log" }, "logarithmic"));
        select.value = this.scale;
        holder.append(make("label", {}, "scale", select));
      }
      holder.append(make("button", { type: "button", "data-save": "", onclick: () => this.save() }, "CSV of what is shown"));
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
          const start = this.chart.start[menu.name];
          if (this.chosen[menu.name] === undefined && menu.values.includes(start)) this.chosen[menu.name] = start;
          if (!menu.values.includes(this.chosen[menu.name])) this.chosen[menu.name] = menu.values.reduce((best, one) => (lines.get(one).size >= lines.get(best).size ? one : best), menu.values[0]);
          menu.select.selectedIndex = menu.values.indexOf(this.chosen[menu.name]);
        }
        kept = kept.filter((row) => get(row) === this.chosen[menu.name]);
      });
      this.off.clear();
      if (this.chart.kind !== "grid") this.namesOfLines().slice(LINES).forEach((line) => this.off.add(line));
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
      return [...groups.values()].map((mark) => {
        const n = mark.numbers.length, mean = mark.numbers.reduce((sum, one) => sum + one, 0) / n;
        const deviation = n > 1 ? Math.sqrt(mark.numbers.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (n - 1)) : 0;
        const low = this.scale === "log" ? Math.max(mean - deviation, mean * 0.01) : mean - deviation;
        const keys = mark.cells.map((cell) => cell.key);
        const value = written(this.chart.kind === "grid" ? Number(mean.toFixed(3)) + 0 : mean);
        return { ...mark, mean, n, deviation, low, high: mean + deviation, value, keys: keys.length > 2 ? `${keys.slice(0, 2).join(", ")} and ${keys.length - 2} more` : keys.join(", "),
          band: this.mode === "each" || n < 2 ? "one number" : `± ${written(deviation)} over ${n} seeds` };
      }).filter((mark) => this.scale !== "log" || mark.mean > 0).sort((a, b) => (a.group < b.group ? -1 : a.group > b.group ? 1 : a.x < b.x ? -1 : 1));
    }
    // Of an architecture, the same everywhere; where two lines of a chart would share one, the second has a spare one. No two are alike.
    paint() {
      const spare = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#7B4EA3", "#A89200", "#882255", "#2A9D8F", "#8C564B", "#332288"];
      const wanted = this.lines.map((line) => DATA.colours[line]), taken = new Set(wanted);
      const given = new Set();
      const spares = (function* () { yield* spare; for (let at = 0; ; at++) yield hue(at); })();
      const another = () => {
        let one;
        for (let tries = 0; tries < 1000; tries++) if (!taken.has((one = spares.next().value)) && !given.has(one)) break; // there are but so many
        return one;
      };
      this.colours = {};
      this.lines.forEach((line, at) => {
        let colour = wanted[at];
        if (!colour || given.has(colour)) colour = another();
        given.add(colour);
        this.colours[line] = shown(colour);
      });
    }
    colour(line) {
      return this.colours[line] || shown("#888888");
    }
    namesOfLines() {
      return inOrder(unique(this.rows().map((row) => String(this.lineOf(row)))));
    }
    chips() {
      const holder = this.box.querySelector(".chips");
      if (this.chart.kind === "grid") return holder.remove();
      this.lines = this.namesOfLines();
      this.paint();
      const whole = (title, names) => make("button", { type: "button", "data-lines": title, onclick: () => { this.off = new Set(names); this.draw(); } }, title);
      const both = this.lines.length > 3 ? [whole("all", []), whole("none", this.lines)] : [];
      holder.replaceChildren(...both, ...this.lines.map((line) => {
        const swatch = make("span", { class: "swatch", "aria-hidden": "true" });
        swatch.style.background = this.colour(line);
        return make("button", { type: "button", "data-line": line, "aria-pressed": String(!this.off.has(line)), onclick: (event) => {
          this.off.has(line) ? this.off.delete(line) : this.off.add(line);
          event.currentTarget.setAttribute("aria-pressed", String(!this.off.has(line)));
          this.draw(true);
        } }, swatch, line);
      }));
    }
    draw(keepChips = false) {
      if (!keepChips && this.box.querySelector(".chips")) this.chips();
      const marks = (this.shownMarks = this.marks());
      const networks = new Set(marks.flatMap((mark) => mark.cells.map((cell) => cell.key))).size;
      const select = this.chart.networks ? " Select a point for the networks behind it." : "";
      const none = this.off.size && this.lines && this.off.size >= this.lines.length ? "Nothing to show: choose lines above." : "Nothing to show: on a logarithmic scale only values above 0 have a place.";
      this.box.querySelector("[role=status]").textContent = marks.length ? `${plural(marks.length, "point")}${networks ? ` of ${plural(networks, "network")}` : ""}.${select}${this.fixed.length ? ` Everywhere ${this.fixed.join(", ")}.` : ""}` : none;
      this.numbers(marks);
      this.pending = this.vega(marks);
    }
    numbers(marks) {
      const holder = this.box.querySelector(".numbers"), details = holder.parentElement;
      const fill = () => {
        const table = make("table"), grid = this.chart.kind === "grid";
        const heads = [{ title: grid ? this.chart.y_title : this.chart.line.replaceAll("_", " "), get: (mark) => (grid ? mark.y : mark.line) }];
        if (this.chart.kind !== "points") heads.push({ title: this.chart.x_title, get: (mark) => mark.x });
        heads.push({ title: this.chosen[this.chart.named_by] || this.chart.measured_title, get: (mark) => mark.mean });
        if (!grid) heads.push({ title: "standard deviation", get: (mark) => (mark.n > 1 ? mark.deviation : null) }, { title: "seeds", get: (mark) => mark.n });
        if (this.chart.networks) heads.push({ title: "networks", get: (mark) => mark.cells.length, cell: (mark) => make("td", {}, make("button", { type: "button", onclick: () => this.select(mark) }, `show ${mark.cells.length}`)) });
        sortable(table, heads, marks, { most: TABLE_ROWS });
        const note = marks.length > TABLE_ROWS ? [make("p", { class: "hint" }, `The first ${TABLE_ROWS} of ${marks.length}.`)] : [];
        holder.replaceChildren(make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": `Numbers of ${this.chart.title}` }, table), ...note);
      };
      details.ontoggle = () => details.open && fill();
      if (details.open) fill(); else holder.replaceChildren();
    }
    select(mark) {
      const at = this.chart.kind === "points" ? "" : `, ${this.chart.x_title} ${written(mark.x)}`;
      return showCells(`${mark.line}${at}: ${mark.value}`, mark.cells);
    }
    async vega(marks) {
      await LIBRARY;
      const style = getComputedStyle(document.documentElement), ink = style.getPropertyValue("--ink").trim(), line = style.getPropertyValue("--line").trim();
      this.colours = this.colours || {};
      const inner = make("div");
      const lines = unique(marks.map((mark) => mark.line)), spec = structuredClone(this.chart.spec);
      const domain = lines, range = lines.map((one) => this.colour(one));
      const wide = this.box.querySelector(".view").clientWidth - 70, named = this.chosen[this.chart.named_by];
      for (const layer of spec.layer) {
        const { color, x, y, tooltip } = layer.encoding;
        if (named && y.title) y.title = named;
        for (const [axis, room] of [[x, wide], [y, 300]]) if (axis.title) axis.title = folded(axis.title, room);
        if (tooltip && !this.chart.networks) layer.encoding.tooltip = tooltip.filter((one) => one.field !== "keys");
        if (color && color.field === "line") color.scale = { domain, range };
        if (this.chart.kind === "lines") y.scale = this.scale === "log" ? { type: "log" } : { type: this.scale, zero: false };
        if (this.scale === "log") y.axis = { ...y.axis, gridOpacity: { condition: { test: "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-6", value: 1 }, value: 0.3 } };
        if (this.chart.kind === "lines" && marks.every((mark) => Number.isInteger(mark.x))) x.axis = { ...x.axis, tickMinStep: 1, format: "d" };
        if (this.chart.kind === "points") {
          y.sort = unique([...marks].sort((a, b) => b.mean - a.mean).map((mark) => mark.line));
          y.axis = { ...y.axis, labelLimit: Math.min(320, 0.45 * this.box.clientWidth) };
        }
        if (this.scale === "symlog") {
          y.scale = { ...y.scale, nice: false };
          y.axis = { values: powers(marks), labelExpr: "'10^' + format(datum.value, ',')" };
        }
        if (tooltip && this.chart.kind === "lines" && marks.length > 60 * unique(marks.map((mark) => mark.group)).length) layer.mark.size = 12; // hundreds of points a line
        if (this.chart.kind === "lines" && this.chart.x === "times") x.scale = { type: "log", base: 2 };
      }
      const low = Math.min(...marks.map((mark) => mark.low)), high = Math.max(...marks.map((mark) => mark.high));
      if (this.chart.kind === "lines" && low === high && this.scale === "linear") { // one value: in the middle of an axis
        for (const layer of spec.layer) layer.encoding.y.scale.domain = low ? [low - Math.abs(low) / 2, low + Math.abs(low) / 2] : [-1, 1];
      }
      const sizes = marks.map((mark) => mark.mean), middle = (Math.min(...sizes) + Math.max(...sizes)) / 2;
      if (this.chart.kind === "points") spec.height = 24 * lines.length + 20;
      if (this.chart.kind === "grid") {
        spec.height = 24 * unique(marks.map((mark) => mark.y)).length + 90;
        inner.style.minWidth = `${30 * unique(marks.map((mark) => mark.x)).length + 150}px`; // squares that a number has room in
        marks = marks.map((mark) => ({ ...mark, y: String(mark.y), x: String(mark.x), dark: mark.mean <= middle }));
      }
      spec.config = { background: null, font: "system-ui, sans-serif", view: { stroke: null }, axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", labelLimit: 170, labelFlush: false }, legend: { labelColor: ink, titleColor: ink }, text: { color: ink } };
      spec.data = { name: "rows" };
      spec.datasets = { rows: marks.map(({ cells, numbers, ...mark }, at) => ({ ...mark, at })) };
      spec.description = `${this.chart.title}. ${marks.length} points; the same numbers are in the table below it.`;
      const holder = this.box.querySelector(".view");
      const turn = (this.turn = (this.turn || 0) + 1);
      if (this.result) this.result.finalize();
      holder.replaceChildren(inner);
      const result = await window.vegaEmbed(inner, spec, { actions: false, renderer: marks.length > 3000 ? "canvas" : "svg", tooltip: { theme: dark() ? "dark" : "light" } });
      if (turn !== this.turn) return;
      this.result = result;
      if (holder.scrollWidth > holder.clientWidth) holder.tabIndex = 0; else holder.removeAttribute("tabindex"); // scrolled by keyboard too
      result.view.addEventListener("click", (event, item) => {
        const at = item && item.datum && item.datum.at;
        if (at !== undefined && this.shownMarks[at].cells.length) this.select(this.shownMarks[at]);
      });
      this.box.dataset.drawn = String(marks.length);
    }
    save() {
      const grid = this.chart.kind === "grid";
      const names = [this.chart.line, ...(this.chart.kind === "points" ? [] : [this.chart.x]), this.chart.measured, "deviation", "seeds", "cells"];
      const rows = this.shownMarks.map((mark) => [grid ? mark.y : mark.line, ...(this.chart.kind === "points" ? [] : [mark.x]), mark.mean, mark.n > 1 ? mark.deviation : null, mark.n, mark.cells.map((cell) => cell.key).join(" ")]);
      saved(`${this.chart.name}.csv`, csv(names, rows), "text/csv");
    }
  }

  // Places on a symmetric logarithmic axis: powers of ten on both sides of 0, within what there is.
  function powers(marks) {
    const low = Math.min(...marks.map((mark) => mark.low)), high = Math.max(...marks.map((mark) => mark.high)), found = [0];
    for (let size = 1; size <= Math.max(-low, high); size *= 10) found.push(...[-size, size].filter((one) => one >= low && one <= high));
    return found;
  }

  // The library is a script of this page, unpacked when the first chart comes into view.
  let load;
  const LIBRARY = { then: (done, fail) => (load = load || inflated("vega-embed").then((text) => { const script = make("script"); script.textContent = text; document.head.append(script); })).then(done, fail) };
  const panels = [];

  function charts() {
    const named = Object.fromEntries(DATA.charts.map((chart) => [chart.name, chart]));
    const watch = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        watch.unobserve(entry.target);
        panels.push(new Panel(entry.target, named[entry.target.dataset.chart]));
      }
    }, { rootMargin: "400px" });
    document.querySelectorAll("[data-chart]").forEach((box) => watch.observe(box));
  }

  // ---- downloads, theme, start ----

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

  byId("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    panels.forEach((panel) => panel.draw()); // chips and lines in colours for the other paper
  });
  document.querySelectorAll("[data-csv]").forEach((button) => button.addEventListener("click", () => download(button.dataset.csv)));

  (async () => {
    DATA = await unpacked("main");
    CELLS = records(DATA.cells);
    BY_KEY = new Map(CELLS.map((cell) => [cell.key, cell]));
    scorecard();
    published();
    charts();
    document.documentElement.dataset.ready = "true";
    window.rankfall = { data: DATA, cells: CELLS, panels, showCell, inUnits };
  })();
})();
