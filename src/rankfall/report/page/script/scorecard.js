// ---- the scorecard: the architectures of one setting, since numbers of two are not compared ----

const SCORES = 300; // rows of the scorecard at once
const SETTINGS = 4; // other settings that a search names at most
const NAME = 150, NUMBER = 76; // least pixels of a column of names, and of numbers

const titled = (row) => (row.variant ? `${row.architecture} (${row.variant})` : row.architecture);
const measured = (row, one) => (row[one.name + "_at"] ?? row[one.name + "_of"] ?? null) !== null;
// As report/labels.py: what decimals would make a zero is written with its power of ten.
const LEAST = 16 * 2 ** -52; // a relative residual below it is rounding noise of float64
function fixed(number, digits) {
  const text = number.toFixed(digits);
  return /[1-9]/.test(text) ? text : number ? number.toExponential(1) : text.replace("-", "");
}
const atFloor = (row, one) => "floor" in one.beside && row[one.name] !== null && (row[one.name + "_floor"] === 1 || row[one.name] <= LEAST);

function scorecard() {
  const table = byId("scorecard-table");
  if (!table || !DATA.scorecard) return;
  const every = records(DATA.scorecard), setting = byId("score-setting"), part = byId("score-part"), search = byId("score-search");
  setting.append(...DATA.settings.map(({ label }) => make("option", { value: label }, label)));
  const asked = VIEW.get("score.setting");
  if (DATA.settings.some(({ label }) => label === asked)) setting.value = asked;
  search.value = VIEW.get("score.name") || "";
  let wide = 0;
  const show = () => {
    const rows = every.filter((row) => row.setting === setting.value), heads = DATA.headlines.filter((one) => rows.some((row) => measured(row, one)));
    const fit = Math.max(2, Math.floor((table.parentElement.clientWidth - (innerWidth > 640 ? NAME : 110)) / NUMBER)), parts = partsOf(heads, fit);
    const kept = Math.max(0, parts.findIndex(({ title }) => title === (part.value || VIEW.get("score.numbers"))));
    part.replaceChildren(...parts.map(({ title }) => make("option", { value: title }, title)));
    part.selectedIndex = kept;
    part.parentElement.hidden = parts.length < 2;
    wide = fit;
    showScores(every, rows, setting.value, parts.length ? parts[kept].heads : [], search);
  };
  setting.addEventListener("change", () => { show(); VIEW.set("score.setting", setting.value); });
  part.addEventListener("change", () => { show(); VIEW.set("score.numbers", part.value); });
  byId("score-link").append(linkButton("scorecard"));
  show();
  new ResizeObserver(() => Math.max(2, Math.floor((table.parentElement.clientWidth - (innerWidth > 640 ? NAME : 110)) / NUMBER)) !== wide && show()).observe(table.parentElement);
}

// Numbers in parts that the window has room for, so that nothing is scrolled sideways: of one study, or of several that fit.
function partsOf(heads, most) {
  const pieces = [];
  for (const study of unique(heads.map((one) => one.study))) {
    const own = heads.filter((one) => one.study === study), count = Math.ceil(own.length / most), size = Math.ceil(own.length / count);
    for (let at = 0; at < count; at++) pieces.push({ title: count > 1 ? `${study} ${at + 1} of ${count}` : study, heads: own.slice(at * size, (at + 1) * size) });
  }
  const parts = [];
  for (const piece of pieces) {
    const last = parts.at(-1);
    if (last && last.heads.length + piece.heads.length <= most) parts[parts.length - 1] = { title: `${last.title}, ${piece.title}`, heads: [...last.heads, ...piece.heads] };
    else parts.push(piece);
  }
  return parts;
}

// What a number is compared with, where it is the same in all rows: under the heading.
function commonLevels(rows, one) {
  return Object.fromEntries(Object.keys(one.beside).map((kind) => {
    const values = unique(rows.map((row) => row[`${one.name}_${kind}`]).filter((value) => value !== null).map((value) => fixed(value, 2)));
    return [kind, values.length === 1 ? values[0] : null];
  }).filter(([, value]) => value !== null));
}

// How much of what its mask leaves attainable a network has reached, where that is not everything.
const shareWords = (value, best, common) => (best >= 1 || best <= 0 ? "" : `${Math.round((100 * value) / best)}% of attainable${common ? "" : ` ${fixed(best, 2)}`}`);
// The floor is a share of samples, of which there may be none.
const levelWords = (kind, value) => (kind !== "floor" ? `${kind} ${fixed(value, 2)}` : value >= 0.005 ? `${Math.round(100 * value)}% noise` : "");

function showScores(every, rows, setting, heads, search) {
  const about = DATA.settings.find(({ label }) => label === setting);
  byId("score-at").textContent = `${setting} (${about.sizes})`;
  const studies = make("tr", {}, make("td"));
  for (const study of unique(heads.map((one) => one.study))) {
    studies.append(make("th", { scope: "colgroup", colspan: heads.filter((one) => one.study === study).length }, study === "use" ? "use and cost" : study));
  }
  const name = { title: "architecture", get: titled, cell: (row) => make("th", { scope: "row" }, make("button", { type: "button", "data-made": titled(row), title: "What it is made of", onclick: () => showMakeup(row, setting, heads) }, ...breakable(titled(row)))) };
  const numbers = heads.map((one) => {
    const common = commonLevels(rows, one);
    const title = make("span", {}, one.title, ...Object.entries(common).map(([kind, value]) => make("span", { class: "level" }, levelWords(kind, Number(value)))));
    return { title, name: one.name, about: one.meaning, get: (row) => row[one.name], cell: (row) => {
      const value = row[one.name], spread = row[one.name + "_deviation"];
      const text = value === null ? (measured(row, one) ? "–" : "") : atFloor(row, one) ? "floor" : fixed(value, one.digits), lost = row[one.name + "_of"] !== null && row[one.name + "_lost"];
      const lines = [
        spread !== null && value !== null && text !== "floor" && (text.includes("e") || Number(spread.toFixed(one.digits))) ? `± ${fixed(spread, one.digits)}` : null,
        value !== null && (row[one.name + "_attainable"] ?? null) !== null ? shareWords(value, row[one.name + "_attainable"], "attainable" in common) : null,
        ...Object.keys(one.beside).filter((kind) => kind !== "attainable" && !(kind in common) && value !== null && row[`${one.name}_${kind}`] !== null).map((kind) => levelWords(kind, row[`${one.name}_${kind}`])),
        lost && one.counted === "seed" ? `${row[one.name + "_seeds"] ?? 0} of ${row[one.name + "_of"]} seeds` : null,
      ].filter(Boolean);
      const said = `${one.title} of ${titled(row)}: ${[value === null ? "none" : text, ...lines].join(", ")}`;
      const button = make("button", { type: "button", "aria-label": said, "data-number": one.name, "data-row": titled(row), onclick: () => showNumber(every, one, row, setting) }, text || "\u00a0", ...lines.map((line) => make("span", { class: "spread" }, line)));
      button.style.setProperty("--keeps", (0.44 * row[one.name + "_shade"]).toFixed(3));
      return make("td", { class: value === null ? "none" : "" }, button);
    } };
  });
  const asked = VIEW.get("score.sort") || "residual_last", at = numbers.findIndex((one) => one.name === asked.replace(/^-/, "")) + 1;
  const view = sortable(byId("scorecard-table"), [name, ...numbers], rows, { sort: [at, asked.startsWith("-")], head: studies, most: SCORES, sorted: (one, down) => VIEW.set("score.sort", (down ? "-" : "") + (one.name || "architecture")) });
  const filter = () => {
    const text = search.value.toLowerCase(), named = (row) => titled(row).toLowerCase().includes(text), kept = rows.filter(named);
    byId("score-count").textContent = `${kept.length} of ${plural(rows.length, "architecture")} at this setting` + (kept.length > SCORES ? `, the first ${SCORES} are shown: type a part of a name` : "");
    if (text) byId("score-count").append(...elsewhere(every.filter((row) => row.setting !== setting && named(row))));
    view.show(kept);
  };
  search.oninput = () => { filter(); VIEW.set("score.name", search.value); };
  filter();
}

// Buttons that lead to the other settings of architectures, since a new one is often not at the setting that the page begins with.
function elsewhere(rows) {
  const select = (label) => { byId("score-setting").value = label; byId("score-setting").dispatchEvent(new Event("change")); };
  const parts = unique(rows.map((row) => row.setting)).slice(0, SETTINGS).map((label) => {
    const names = rows.filter((row) => row.setting === label).map(titled);
    return [`; ${few(names, 3)} at `, make("button", { type: "button", "data-setting": label, onclick: () => select(label) }, label)];
  });
  return parts.flat();
}

function showMakeup(row, setting, heads) {
  const list = make("dl"), own = CELLS.filter((cell) => cell.label === titled(row) && cell.setting === setting);
  for (const [name, about] of Object.entries(DATA.made_of)) {
    if (row[name] !== null) list.append(make("dt", { title: about }, name.replaceAll("_", " ")), make("dd", {}, make("code", {}, row[name]), make("span", { class: "hint" }, ` ${about}`)));
  }
  const numbers = make("dl");
  for (const one of heads) if (row[one.name] !== null) numbers.append(make("dt", {}, one.title), make("dd", {}, inUnits(row[one.name], one.unit), make("span", { class: "hint" }, ` ${row[one.name + "_at"] || setting}`)));
  showCells(titled(row), own, make("h3", {}, "Made of"), list, make("h3", {}, "Its numbers"), numbers);
}

async function showNumber(every, one, row, setting) {
  const value = row[one.name], spread = row[one.name + "_deviation"], seeds = row[one.name + "_seeds"], of = row[one.name + "_of"];
  const list = make("dl");
  const add = (name, text) => text !== null && text !== "" && list.append(make("dt", {}, name), make("dd", {}, String(text)));
  add("value", value === null ? "none" : inUnits(value, one.unit));
  add("standard deviation", spread === null ? null : written(spread, 4));
  for (const [kind, about] of Object.entries(one.beside)) if (row[`${one.name}_${kind}`] !== null) add(kind === "floor" ? "at the floor" : kind, `${written(row[`${one.name}_${kind}`], 4)} (${about})`);
  if (value !== null && (row[one.name + "_attainable"] ?? null) !== null) add("share of attainable", `${written((100 * value) / row[one.name + "_attainable"], 3)}%`);
  if (one.counted !== "seed") add(`${one.counted}s`, seeds ?? null);
  else add("seeds", (of ?? null) === null ? null : seeds === of ? of : `${seeds ?? 0} of ${of}`);
  add("seeds lost", row[one.name + "_lost"] ?? null);
  add("measured on", row[one.name + "_at"] ?? setting);
  add("why there is none", row[one.name + "_reason"]);
  add("definition", one.meaning);
  add("comes from", `table ${one.table}: ${one.columns.join(", ")}`);
  const holder = make("div", { "aria-live": "polite" });
  opened(`${one.title}: ${titled(row)}`, list, holder);
  holder.append(...(await madeOf(one, (cell) => cell && cell.label === titled(row) && cell.setting === setting, every.indexOf(row), value)));
}

// What a number is made of: its networks, each with its number, and the rows of the table.
async function madeOf(one, ours, at, value) {
  BEHIND = BEHIND || (await unpacked("behind"));
  const about = BEHIND[one.name], parts = [];
  if (!about) return [];
  if (about.networks) {
    const networks = records(about.networks).map((row) => ({ ...row, of: CELLS[row.cell] })).filter((row) => ours(row.of));
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
  const own = get.key && about.networks ? places.filter((place) => ours(BY_KEY.get(get.key(place)))) : places;
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
