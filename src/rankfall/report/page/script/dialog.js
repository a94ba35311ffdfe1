// ---- the dialog: networks, their provenance, and what a number is made of ----

const dialog = byId("cell"), dialogBody = byId("cell-body");
dialog.querySelector(".close").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
dialog.addEventListener("close", () => VIEW.set("network", null));

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
  VIEW.set("network", null);
  (before.length ? back : dialog.querySelector(".close")).focus();
});
const nameOf = (cell) => `${cell.label}, ${cell.task}, ${cell.training}, depth ${cell.depth}, seed ${cell.seed}`;
const keyButton = (cell) => make("button", { type: "button", "data-key": cell.key, "aria-label": `Provenance of ${nameOf(cell)}`, onclick: () => showCell(cell.key) }, cell.key.slice(0, 12));
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
  VIEW.set("network", key);
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
    parts.push(make("h3", {}, "The configuration that computes it again ", copy, status), make("p", { class: "hint" }, "Save it as again.yaml, then: rankfall run --config again.yaml"), make("pre", { tabindex: "0", class: "snippet" }, snippet));
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

