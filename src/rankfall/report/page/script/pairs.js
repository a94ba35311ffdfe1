// ---- two architectures of the scorecard's setting, compared over the seeds that both have ----

const STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042]; // 97.5% quantiles of t by degrees of freedom
const ROUNDING = 1e-9; // as report/ranking.py: a relative difference up to this is rounding

// The mean of differences with both ends of its interval; null ends with fewer than two.
function pairedInterval(differences, size) {
  const n = differences.length, mean = differences.reduce((sum, one) => sum + one, 0) / n;
  if (n < 2) return { n, mean: n ? mean : null, low: null, high: null };
  const deviation = Math.sqrt(differences.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (n - 1));
  const reach = Math.max((STUDENT[n - 2] || 1.96 + 2.4 / (n - 1)) * deviation / Math.sqrt(n), ROUNDING * size);
  return { n, mean, low: mean - reach, high: mean + reach };
}

function comparePairs() {
  const box = byId("pairs"), table = byId("pairs-table"), one = byId("pairs-one"), other = byId("pairs-other"), setting = byId("score-setting");
  if (!box || !DATA.scorecard) return;
  const every = records(DATA.scorecard);
  const rowsHere = () => every.filter((row) => row.setting === setting.value);
  const fill = () => {
    const names = rowsHere().map(titled);
    [one, other].forEach((select, at) => {
      const before = select.value || VIEW.get(`pairs.${select.id.slice(6)}`);
      select.replaceChildren(...names.map((name) => make("option", {}, name)));
      select.selectedIndex = Math.max(names.indexOf(before), before && names.includes(before) ? 0 : Math.min(at, names.length - 1));
    });
    return box.open && show();
  };
  // Seed -> number of an architecture, on the scale on which it is compared.
  const seedsOf = (headline, row) => {
    const found = new Map(), about = BEHIND[headline.name], noise = row[`${headline.name}_floor`] === 1; // all rounding noise counts as equal
    if (!about || !about.networks || headline.counted !== "seed") return found;
    for (const { cell, number } of records(about.networks)) {
      const of = CELLS[cell];
      if (of.label === titled(row) && of.setting === setting.value && number !== null) found.set(of.seed, headline.scale === "log" ? Math.log10(noise ? LEAST : Math.max(number, LEAST)) : number);
    }
    return found;
  };
  const show = async () => {
    BEHIND = BEHIND || (await unpacked("behind"));
    const rows = rowsHere(), [a, b] = [one, other].map((select) => rows.find((row) => titled(row) === select.value));
    if (!a || !b) return;
    const value = (row, headline) => (row[headline.name] === null ? "–" : atFloor(row, headline) ? "floor" : fixed(row[headline.name], headline.digits));
    const found = DATA.headlines.filter((headline) => a[headline.name] !== null && b[headline.name] !== null).map((headline) => {
      const [left, right] = [a, b].map((row) => seedsOf(headline, row)), shared = [...left.keys()].filter((seed) => right.has(seed));
      const size = Math.max(0, ...shared.flatMap((seed) => [Math.abs(left.get(seed)), Math.abs(right.get(seed))]));
      return { headline, ...pairedInterval(shared.map((seed) => left.get(seed) - right.get(seed)), size) };
    });
    const verdict = ({ n, low, high }) => (!n ? "no seeds to pair" : n < 2 ? "one shared seed: undecided" : low > 0 ? "more" : high < 0 ? "less" : "a tie");
    const heads = [
      { title: "number", get: (row) => row.headline.title }, { title: titled(a), get: (row) => value(a, row.headline) }, { title: titled(b), get: (row) => value(b, row.headline) },
      { title: "difference", get: (row) => row.mean, cell: (row) => make("td", {}, row.mean === null ? "" : fixed(row.mean, row.headline.digits), row.low === null ? null : make("span", { class: "spread" }, ` ${fixed(row.low, row.headline.digits)} to ${fixed(row.high, row.headline.digits)}`)) },
      { title: "shared seeds", get: (row) => row.n }, { title: "verdict", get: verdict },
    ];
    sortable(table, heads, found);
  };
  for (const select of [one, other]) select.addEventListener("change", () => { VIEW.set(`pairs.${select.id.slice(6)}`, select.value); show(); });
  setting.addEventListener("change", fill);
  box.addEventListener("toggle", () => box.open && show());
  fill();
}
