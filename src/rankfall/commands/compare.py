"""Show the differences between two runs, by specification, such as the effect of an edit of the code on the numbers."""

import argparse
import json
from pathlib import Path

ARGUMENTS = """
first FOLDER    folder of results
second FOLDER   the folder that it is compared with
--tolerance X   largest relative difference that counts as equal (default: 0, bit for bit)
--json          print JSON
"""


def run(args: argparse.Namespace) -> int:
    from rankfall.report.processors import describe_difference
    from rankfall.report.runs import as_lines, code_differences, compare_runs

    differences = compare_runs(args.first, args.second, args.tolerance)
    processors = describe_difference(args.first, args.second)
    if args.json:
        rows = [{"table": "", "column": "processor", "what": processors}] if processors else []
        print(json.dumps(rows + [vars(item) for items in differences.values() for item in items], indent=2))
    else:
        if processors:
            print(f"processors: {processors}: the last digits may differ for that alone")
        print("\n".join(as_lines(differences, code_differences(read_codes(args.first), read_codes(args.second)))))
    return 1 if any(differences.values()) else 0


def read_codes(run: Path) -> dict[str, dict[str, str]]:
    """Return specification -> digests of the code, for the cells in a run's tables that its store has."""
    import pyarrow.parquet as pq

    from rankfall.run.store import Store

    cells, store = run / "tables" / "cells.parquet", run / "store"
    if not cells.is_file() or not store.is_dir():
        return {}
    records = Store(store, only_reads=True).find_cells(pq.read_table(cells, columns=["key"])["key"].to_pylist())
    return {str(cell.record.get("spec")): cell.record.get("code") or {} for cell in records.values()}
