// ---- points and lines that lie on each other ----

// How far apart values are on the axis that they are drawn on.
const onAxis = (scale) => (scale === "log" ? Math.log10 : scale === "symlog" ? (value) => Math.sign(value) * Math.log10(1 + Math.abs(value)) : (value) => value);

const TOLD = 60; // lines: of more nobody could tell the dashes, and to look for them takes long

// For each mark the marks of other lines that are at its place, to the eye.
function meetings(marks, scale) {
  if (unique(marks.map((mark) => mark.line)).length > TOLD) return new Map();
  const height = onAxis(scale), heights = marks.map((mark) => height(mark.mean)), found = new Map();
  const reach = 0.006 * (Math.max(...heights) - Math.min(...heights)) || 1e-12, at = new Map();
  marks.forEach((mark, place) => (at.get(mark.x) || at.set(mark.x, []).get(mark.x)).push(place));
  for (const places of at.values()) {
    places.sort((a, b) => heights[a] - heights[b]);
    for (let one = 0; one < places.length; one++) {
      for (let other = one + 1; other < places.length && other < one + 40 && heights[places[other]] - heights[places[one]] <= reach; other++) {
        for (const [a, b] of [[places[one], places[other]], [places[other], places[one]]]) (found.get(marks[a]) || found.set(marks[a], []).get(marks[a])).push(marks[b]);
      }
    }
  }
  return found;
}

// Groups of lines each of which hides the others nearly everywhere.
function hidden(marks, met, mode) {
  if (mode === "each") return [];
  const own = new Map(), together = new Map(), groups = [];
  for (const mark of marks) {
    own.set(mark.line, (own.get(mark.line) || 0) + 1);
    for (const { line } of met.get(mark) || []) { const pair = `${mark.line}\n${line}`; together.set(pair, (together.get(pair) || 0) + 1); }
  }
  const alike = (one, other) => (together.get(`${one}\n${other}`) || 0) >= Math.max(2, 0.8 * Math.max(own.get(one), own.get(other)));
  for (const line of inOrder([...own.keys()])) {
    const group = groups.find((others) => others.every((other) => alike(line, other)));
    if (group) group.push(line); else groups.push([line]);
  }
  return groups.filter((group) => group.length > 1);
}

// Dashes by which lines that lie on each other are seen in turns: [line, drawn and left out lengths].
function dashes(groups) {
  const found = new Map(), piece = 9;
  for (const group of groups) group.forEach((line, at) => found.set(line, at ? [0, piece * at, piece, piece * (group.length - 1 - at)] : [piece, piece * (group.length - 1)]));
  return found;
}
