"""Check this machine and the store: versions, processors, disk, damage; or a SLURM cluster and its profile."""

import argparse
import json
import sys
from dataclasses import asdict

ARGUMENTS = """
--results FOLDER    folder of results (default: results)
--verify            read every file of the store and set damaged ones aside
--slurm             check the SLURM cluster instead, with a job that takes a second
--profile FOLDER    profile to check with --slurm (default: workflow/profiles/slurm)
--probe-seconds N   how long that job may wait in the queue (default: 60)
--json              print JSON
"""


def run(args: argparse.Namespace) -> int:
    from rankfall.run.doctor import local

    if args.slurm:
        from rankfall.run.doctor.slurm import slurm

        checks = [*local.results(args.results), *slurm(args.profile, args.results, args.probe_seconds)]
    else:
        checks = [
            *local.packages(),
            *local.processors(),
            *local.results(args.results),
            *local.store(args.results, args.verify),
        ]
    if args.json:
        print(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        colours = {"ok": "32", "warn": "33", "fail": "31"} if sys.stdout.isatty() else {}
        for check in checks:
            state = f"\x1b[{colours[check.state]}m{check.state:<4}\x1b[0m" if colours else f"{check.state:<4}"
            print(f"{state}  {check.name:<11} {check.text}")
    return 1 if any(check.state == "fail" for check in checks) else 0
