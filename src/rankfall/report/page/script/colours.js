// ---- colours: for both papers ----

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
  const mix = light < 0.2 ? 0.75 : 0.25;
  return "#" + parts.map((part) => Math.round(part + (255 - part) * mix).toString(16).padStart(2, "0")).join("");
}
// Colour number `at` of any number: hues by the golden angle, so that neighbours are far apart, in three lightnesses.
function hue(at) {
  const angle = at * 137.508, light = [0.4, 0.56, 0.27][at % 3], reach = 0.6 * Math.min(light, 1 - light);
  const part = (n) => light - reach * Math.max(-1, Math.min(((n + angle / 30) % 12) - 3, 9 - ((n + angle / 30) % 12), 1));
  return "#" + [part(0), part(8), part(4)].map((one) => Math.round(255 * one).toString(16).padStart(2, "0")).join("");
}
const SPARE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#7B4EA3", "#A89200", "#882255", "#2A9D8F", "#8C564B", "#332288"];
// Of an architecture, the same everywhere; where two lines of a chart would share one, the second has a spare one. No two are alike.
function paint(lines) {
  const taken = new Set(lines.map((line) => DATA.colours[line])), given = new Set(), found = {};
  const spares = (function* () {
    for (const colour of SPARE) if (!taken.has(colour)) yield colour;
    for (let at = 0; ; at++) if (!taken.has(hue(at))) yield hue(at);
  })();
  for (const line of lines) {
    const own = DATA.colours[line], colour = own && !given.has(own) ? own : spares.next().value;
    given.add(colour);
    found[line] = shown(colour);
  }
  return found;
}
// Of squares: from paper to blue, and blue is what keeps more, as in the scorecard; from paper to grey where neither end is better.
function shades(better) {
  const paper = dark() ? "#20262d" : "#f4f6f8", full = better ? (dark() ? "#4aa3df" : "#2b83ba") : dark() ? "#9aa3ad" : "#8c949d";
  return better === "low" ? [full, paper] : [paper, full];
}
