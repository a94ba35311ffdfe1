// ---- elements, numbers and texts ----

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


const plural = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;
const inUnits = (value, unit) => `${written(value, 8)} ${value === 1 && unit !== "ms" ? unit.replace(/s$/, "") : unit}`.trim();
const breakable = (text) => text.split(/(?<=[+_-])/).flatMap((part) => [part, make("wbr")]);
// The first few of a list, and how many more there are.
const few = (names, most = 6) => (names.length > most + 1 ? [...names.slice(0, most), `${names.length - most} more`] : names).join(", ");
