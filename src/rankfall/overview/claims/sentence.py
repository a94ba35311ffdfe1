"""The sentence on how many claims hold."""

from rankfall.report.decision import CONTRADICTED, HOLDS, IN_PART, UNDECIDED
from rankfall.report.labels import join, many
from rankfall.report.page.question import Read, TableQuestion


def say_claims(read: Read) -> tuple[str, str]:
    table = read("claims")
    if table is None or not len(table):
        return "", ""
    counts = {one: int((table.verdict == one).sum()) for one in (HOLDS, IN_PART, CONTRADICTED, UNDECIDED)}
    verbs = {
        HOLDS: ("holds", "hold"),
        IN_PART: ("holds only in part", "hold only in part"),
        CONTRADICTED: ("is contradicted", "are contradicted"),
        UNDECIDED: ("is undecided", "are undecided"),
    }
    parts = [f"{count} {verbs[one][count > 1]}" for one, count in counts.items() if count]
    return f"Of {many(len(table), 'claim')} of papers that this run has tested, {join(parts)}.", ""


SENTENCES = (TableQuestion("Does what has been said about depth hold?", say_claims, place=130, study="claims"),)
