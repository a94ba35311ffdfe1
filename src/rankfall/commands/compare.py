"""Show the differences between two runs, by specification, such as the effect of an edit of the code on the numbers."""

import argparse
import json
from pathlib import Path

ARGUMENTS = """
FOLDER...       two folders of results
--tolerance X   largest relative difference that counts as equal (default: 0, bit for bit)
--json          print JSON
"""


def run(args: argparse.Namespace) -> int:
    from rankfall.errors import RankfallError
    from rankfall.report.processors import describe_difference
    from rankfall.report.runs import as_lines, code_differences, compare_runs

    if len(args.folder) != 2:
        raise RankfallError(f"compare: {len(args.folder)} folders of results are named: it must be two")
    one, other = args.folder
    found = compare_runs(one, other, args.tolerance)
    processors = describe_difference(one, other)
    if args.json:
        about = [{"table": "", "column": "processor", "what": processors}] if processors else []
        print(json.dumps(about + [vars(one) for each in found.values() for one in each], indent=2))
    else:
        if processors:
            print(f"processors: {processors}: the last digits may differ for that alone")
        print("\n".join(as_lines(found, code_differences(read_codes(one), read_codes(other)))))
    return 1 if any(found.values()) else 0


def read_codes(run: Path) -> dict[str, dict[str, str]]:
    """Return specification -> digests of the code, for the cells in a run's tables that its store has."""
    import pyarrow.parquet as pq

    from rankfall.run.store import Store

    cells, store = run / "tables" / "cells.parquet", run / "store"
    if not cells.is_file() or not store.is_dir():
        return {}
    found = Store(store, only_reads=True).find_cells(pq.read_table(cells, columns=["key"])["key"].to_pylist())
    return {str(one.record.get("spec")): one.record.get("code") or {} for one in found.values()}
