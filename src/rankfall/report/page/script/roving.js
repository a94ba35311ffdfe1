// ---- one stop of the Tab key for many buttons: arrow keys move between them ----

// `rows()`: the buttons as they stand, a list a row. The one that had the focus last is the stop.
function rove(holder, rows) {
  const stop = () => {
    const all = rows().flat();
    const kept = all.find((one) => one.dataset.stop) || all[0];
    for (const one of all) one.tabIndex = one === kept ? 0 : -1;
  };
  const at = (node) => {
    const found = rows();
    for (let row = 0; row < found.length; row++) {
      const column = found[row].indexOf(node);
      if (column >= 0) return { found, row, column };
    }
    return null;
  };
  holder.addEventListener("focusin", (event) => {
    if (!at(event.target)) return;
    for (const one of rows().flat()) delete one.dataset.stop;
    event.target.dataset.stop = "true";
    stop();
  });
  holder.addEventListener("keydown", (event) => {
    const place = at(event.target);
    if (!place || event.altKey || event.ctrlKey || event.metaKey) return;
    const { found, row, column } = place, last = found.length - 1;
    const one = found.length === 1; // a line: it may be folded into several, and all arrows go along it
    const step = { ArrowLeft: -1, ArrowRight: 1, ...(one ? { ArrowUp: -1, ArrowDown: 1 } : {}) }[event.key];
    let next;
    if (step) next = found[row][column + step];
    else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      for (let other = row + (event.key === "ArrowUp" ? -1 : 1); other >= 0 && other <= last && !next; other += event.key === "ArrowUp" ? -1 : 1) next = found[other][Math.min(column, found[other].length - 1)];
    } else if (event.key === "Home") next = found[event.ctrlKey ? 0 : row][0];
    else if (event.key === "End") next = found[row].at(-1);
    else return;
    event.preventDefault();
    if (next) next.focus();
  });
  stop();
  return stop; // to be called when the buttons are others
}
