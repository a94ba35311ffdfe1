"""Sentence on which attention loses rank."""

from rankfall.rank.orders.rows import NEAR, OF_ATTENTION, PLAIN
from rankfall.report.joins import MADE_OF
from rankfall.report.labels import many
from rankfall.report.page.question import Read, TableQuestion
from rankfall.report.selection import select


def say_orders(read: Read) -> tuple[str, str]:
    table = read("orders")
    if table is None:
        return "", ""
    rows = select(table, OF_ATTENTION)
    each, plain = (part.groupby(list(MADE_OF), dropna=False).order.max() for part in (rows, select(rows, PLAIN)))
    if not each.notna().any():
        return "", ""
    cubed, shrunk, kept = (int(((each - order).abs() < NEAR).sum()) for order in (3, 1, 0))
    extras = (
        f" Without position, mask and special token {((plain - 3).abs() < NEAR).sum()} of {len(plain)} do."
        if len(plain)
        else ""
    )
    unfit = int(each.isna().sum())
    beyond = int(((each >= 3 + NEAR) | (each <= -NEAR)).sum())
    between = len(each) - cubed - shrunk - kept - unfit - beyond
    undefined = "".join(
        f" {count} {'has' if count == 1 else 'have'} an order {where} these."
        for count, where in ((between, "between"), (beyond, "beyond"))
        if count
    )
    undefined += f" {unfit} {'has' if unfit == 1 else 'have'} no order; the table says why." if unfit else ""
    cube, shrink, do = (f"{count} {verb if count != 1 else verbs}" for count, verb, verbs in (
        (cubed, "cube", "cubes"), (shrunk, "shrink", "shrinks"), (kept, "do", "does")))  # fmt: skip
    return (
        f"Of {many(len(each), 'kind')} of attention layer, {cube} the residual in every layer (doubly exponential collapse).{extras} "
        f"{shrink} it by a factor (exponential), and {do} not let it vanish.{undefined}",
        "",
    )


SENTENCES = (TableQuestion("Which attention loses rank, and how fast?", say_orders, place=50),)
