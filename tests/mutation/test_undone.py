"""Every mend of what once let a wrong number into a table, undone on a copy of the checkout: the test that guards it must fail.

A test that passes with and without what it tests guards nothing. Each line says what was wrong, the edit that brings it back, and the test.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KEPT = ("src", "tests", "workflow", "benchmarks", "docs", "Snakefile", "config.yaml", "pyproject.toml")

# What is wrong again: (file under src/rankfall, its text, the text without the mend, the test).
UNDONE = {
    "an edit during a job is kept": (
        "run/guards/unchanged.py",
        "    if changed:",
        "    if False:",
        "tests/run/jobs/test_edited.py",
    ),
    "data that no key knows": (
        "run/guards/reads.py",
        "        self.refused.append(describe_read(reader, path))",
        "        return",
        "tests/run/guards/test_reads.py::test_a_file_that_no_key_holds_is_refused_however_it_is_read",
    ),
    "another version of what a component imports": (
        "run/keys/fingerprint.py",
        "        found |= versions_of(",
        "        versions_of(",
        "tests/run/keys/test_installed.py",
    ),
    "a job computes another configuration than was planned": (
        "run/snakemake/jobs.py",
        "if expected is not None and expected != self.digest:",
        "if False:",
        "tests/run/snakemake/test_run_plan.py::test_a_job_stops_that_was_planned_for_another_configuration",
    ),
    "a configuration's file is written over": (
        "run/snakemake/run_plan.py",
        "/ FOLDER / name, about",
        "/ FOLDER, about",
        "tests/run/snakemake/test_run_plan.py::test_a_plan_is_named_by_its_content_and_never_written_again",
    ),
    "a docstring that code reads": (
        "run/keys/imports.py",
        "self.found.reads_text = any(map(self.reads_text, nodes))",
        "self.found.reads_text = False",
        "tests/run/keys/test_fingerprint.py::test_what_a_program_reads_of_its_own_text_counts",
    ),
    "a block that runs, under a name like that of typing": (
        "run/keys/imports.py",
        'if bound[CHECKING] or bound["*"]:',
        "if False:",
        "tests/run/keys/test_fingerprint.py::test_only_what_type_checkers_alone_see_is_left_out",
    ),
    "what another module imports": (
        "run/keys/analyses.py",
        'f"{module} {is_package}\\n"',
        'f"{is_package}\\n"',
        "tests/run/keys/test_analyses.py::test_an_analysis_is_of_the_module_and_not_of_its_text_alone",
    ),
    "what other code has analysed": (
        "run/keys/analyses.py",
        "repr((sys.version, texts))",
        "repr(sys.version)",
        "tests/run/keys/test_analyses.py::test_what_other_code_has_analysed_is_not_found",
    ),
    "a digest from a file that is not whole": (
        "run/keys/analyses.py",
        "if digest == _digest(text) else {}",
        "",
        "tests/run/keys/test_analyses.py::test_a_cache_file_that_is_not_whole_counts_as_none",
    ),
    "a data set under another's name": (
        "run/store/singles.py",
        'if header.meta.get("key") != path.stem:',
        "if False:",
        "tests/run/store/test_binding.py::test_another_files_content_is_never_read_under_a_name",
    ),
    "a stack of another group": (
        "run/store/stacks.py",
        "if group != path.parent.name:",
        "if False:",
        "tests/run/store/test_binding.py::test_a_stack_of_another_group_or_another_ending",
    ),
    "a checkpoint of other cells": (
        "run/store/singles.py",
        'if meta.get("cells") != list(cells):',
        "if False:",
        "tests/run/store/test_binding.py::test_a_checkpoint_is_only_for_the_cells_it_is_of",
    ),
    "rows under other keys": (
        "run/store/rows.py",
        'if identity != path.stem.partition("-")[0]:',
        "if False:",
        "tests/run/store/test_binding.py::test_rows_under_the_name_of_others_with_their_own_checksum",
    ),
    "rows of another measure": (
        "run/store/rows.py",
        'if folder_of(measure) != f"measures/{path.parent.name}":',
        "if False:",
        "tests/run/store/test_binding.py::test_rows_of_another_measure",
    ),
    "tensors of bytes that are not there": (
        "run/store/files.py",
        "if end - begin != needed:",
        "if False:",
        "tests/run/store/test_binding.py::test_a_header_makes_no_tensors_of_bytes_that_are_not_there",
    ),
    "members of a stack are mixed": (
        "trial/independence.py",
        "if (off := difference(compute(axis, True), ",
        "if (off := 0.0 * difference(compute(axis, True), ",
        "tests/trial/test_misbehaving.py::test_is_refused_in_two_lines_that_name_it_and_the_fix",
    ),
    "a component draws random numbers of its own": (
        "trial/flags.py",
        "        if used := [whose for whose, changed in drawn.items() if changed]:",
        "        if used := list[str]():",
        "tests/trial/test_misbehaving.py::test_is_refused_in_two_lines_that_name_it_and_the_fix",
    ),
    "files dated ahead stop their readers": (
        "../../workflow/rules/common.smk",
        '        not_ahead([RUN.results / "work"])',
        "        pass",
        "tests/workflow/test_isolation.py::test_a_second_run_changes_nothing_of_a_live_one",
    ),
    "an edited table stands under the name that people read": (
        "run/snakemake/publish.py",
        "return filecmp.cmp(source, target, shallow=False)",
        "return target.exists()",
        "tests/run/snakemake/test_publish.py::test_what_was_edited_or_removed_is_copied_again",
    ),
    "a shell executes the folder of results": (
        "../../workflow/rules/common.smk",
        "--results {params.results:q}",
        "--results {params.results}",
        "tests/workflow/test_isolation.py::test_folders_that_a_shell_would_execute",
    ),
    "a job runs another package": (
        "commands/_planned.py",
        "if args.package is not None and here.resolve() != args.package.resolve():",
        "if False:",
        "tests/run/snakemake/test_run_plan.py::test_a_job_stops_with_another_package_than_planned_it",
    ),
    "a key twice in YAML": (
        "yaml_text.py",
        "            if key in seen:",
        "            if False:",
        "tests/run/snakemake/test_run_plan.py::test_a_key_that_is_there_twice_is_refused",
    ),
    "cleaning removes what a run needs": (
        "commands/gc.py",
        "    running = add_needed_by_running(store, needed)",
        "    running = 0",
        "tests/run/store/test_gc.py::test_what_a_live_run_announced_is_kept_though_it_is_old",
    ),
    "a change in the middle of a large file": (
        "run/keys/contents.py",
        '        return hashlib.file_digest(file, "sha256").hexdigest()',
        "        return hashlib.sha256(file.read(512) + str(path.stat().st_size).encode()).hexdigest()",
        "tests/run/keys/test_contents.py::test_every_byte_counts",
    ),
    "an edit whose times are set back": (
        "run/keys/contents.py",
        "return stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns",
        "return stat.st_size, stat.st_ino, stat.st_mtime_ns, 0",
        "tests/run/keys/test_contents.py::test_an_edit_whose_times_are_set_back_is_seen",
    ),
    "a pipe in the store is waited for": (
        "run/store/files.py",
        "                if what is not None:\n                    self.set_aside(path",
        "                if False:\n                    self.set_aside(path",
        "tests/run/store/test_odd_files.py",
    ),
    "integers that no file holds": (
        "run/config/bounds.py",
        "if type(value) is int and abs(value) > INTEGER:",
        "if False:",
        "tests/run/config/test_bounds.py::test_a_value_beyond_any_use_is_refused_at_once",
    ),
    "one component of others costs all orders": (
        "rank/orders/measure.py",
        "    except Exception as error:  # anything that a component may raise\n",
        "    except MemoryError as error:\n",
        "tests/rank/test_orders.py::test_one_that_fails_costs_its_own_rows_alone",
    ),
    "a floor is drawn as a law": (
        "rank/law/figure.py",
        '    resolved = table[clear(table, ["architecture"])]',
        "    resolved = table",
        "tests/report/test_foreign_figures.py::test_law",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", UNDONE)
def test_is_noticed(what: str, tmp_path: Path) -> None:
    file, mended, undone, test = UNDONE[what]
    for name in KEPT:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    path = tmp_path / "src" / "rankfall" / file
    text = path.read_text()
    assert text.count(mended) >= 1, f"{file} has no longer the lines of this mend"
    path.write_text(text.replace(mended, undone))
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "slow or not slow", "-p", "no:cacheprovider", test]
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert found.returncode == 1, f"{test} passes without the mend:\n{found.stdout[-2000:]}{found.stderr[-500:]}"
