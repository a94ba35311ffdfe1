// ---- the page's data: unpacked where they are needed ----

const byId = (id) => document.getElementById(id);
const TABLE_ROWS = 400; // of numbers at once: all are in the CSV
let DATA, CELLS, BY_KEY, PROVENANCE = null, BEHIND = null;

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

// The library of charts is a script of this page, unpacked when the first chart comes into view.
let load;
const LIBRARY = { then: (done, fail) => (load = load || inflated("vega-embed").then((text) => { const script = make("script"); script.textContent = text; document.head.append(script); })).then(done, fail) };
