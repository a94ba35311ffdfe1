"""Guards that a rule declares the numbers it compares with once: what is drawn is what decides."""

import ast
import inspect
import sys
from pathlib import Path

import pytest

import rankfall.claims
from rankfall.overview.evidence.chart import MOST
from rankfall.report.claim import Claim, Threshold, claims

OURS = [claim for claim in claims() if "." not in claim.table]
FILES = sorted(Path(rankfall.claims.__file__).parent.glob("*/claim.py"))


def module_of(claim: Claim) -> str:
    return f"rankfall.claims.{claim.table}.claim"


@pytest.mark.parametrize("claim", OURS, ids=lambda claim: claim.name)
def test_a_claim_says_what_its_rule_compares_with(claim: Claim) -> None:
    assert claim.thresholds
    sides = [(number.quantity, number.side) for number in claim.thresholds]
    assert max(map(sides.count, sides)) <= MOST, "the page has no column for more"
    named = [value for value in vars(sys.modules[module_of(claim)]).values() if isinstance(value, Threshold)]
    assert all(any(number is one for one in named) for number in claim.thresholds), (
        "a number without a name cannot decide"
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_what_is_declared_decides_and_what_decides_is_declared(path: Path) -> None:
    """Names of thresholds occur in the functions of the module, and nothing is compared with a number that is not one."""
    tree = ast.parse(path.read_text())
    module = sys.modules[f"rankfall.claims.{path.parent.name}.claim"]
    names = {name for name, value in vars(module).items() if isinstance(value, Threshold)}
    own = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in ast.walk(node.targets[0])
        if isinstance(target, ast.Name) and target.id in names
    }
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    used = {node.id for function in functions for node in ast.walk(function) if isinstance(node, ast.Name)}
    assert own <= used, f"{sorted(own - used)} is drawn and decides nothing"
    shown = {id(number) for claim in OURS if claim.table == path.parent.name for number in claim.thresholds}
    assert {id(vars(module)[name]) for name in own} <= shown, "what decides is not shown"
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Name) and call.func.id in ("compare", "is_on"):
            (bound,) = [node for node in ast.walk(call.args[1]) if isinstance(node, ast.Name | ast.Constant)]
            assert isinstance(bound, ast.Name) and bound.id in names, f"line {call.lineno}: {ast.unparse(call)}"


def test_modules_are_read_as_they_are() -> None:
    """The names of a threshold lead to the file it is in."""
    assert {Path(inspect.getfile(sys.modules[module_of(claim)])) for claim in OURS} == set(FILES)
