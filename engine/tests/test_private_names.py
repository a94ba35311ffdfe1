"""Guards that the private names of torch and numba that the engine uses are those listed here, and says which of them moved."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba")
SOURCE = Path(__file__).parents[1] / "src" / "thousandfold"
PRIVATE = {
    "llvmlite.binding",
    "numba.core.cgutils.int32_t",
    "numba.core.codegen.JITCodeLibrary",
    "numba.core.compiler.CompileResult",
    "numba.core.compiler.CompilerBase",
    "numba.core.compiler.DefaultPassBuilder",
    "numba.core.compiler_machinery.PassManager",
    "numba.core.compiler_machinery.register_pass",
    "numba.core.config",
    "numba.core.datamodel.models",
    "numba.core.imputils.lower_cast",
    "numba.core.serialize",
    "numba.core.typed_passes.NativeLowering",
    "numba.core.typing.templates.AbstractTemplate",
    "numba.core.typing.templates.infer_global",
    "numba.core.typing.templates.signature",
    "torch._C._disabled_torch_function_impl",
    "torch._C._dispatch_has_kernel_for_dispatch_key",
    "torch._decomp.core_aten_decompositions",
    "torch._decomp.get_decompositions",
    "torch._ops.OpOverload",
    "torch.cuda._utils._cuda_load_module",
    "torch.cuda._utils._nvrtc_compile",
    "torch.distributions.Distribution._validate_args",
    "torch.utils._python_dispatch.TorchDispatchMode",
}


def is_private(name: str) -> bool:
    parts = name.split(".")
    return name.startswith(("numba.core", "llvmlite.binding")) or (
        parts[0] == "torch" and any(part.startswith("_") and not part.endswith("__") for part in parts)
    )


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


def names_of(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Attribute):
            yield dotted(node)


def find(name: str) -> Any:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise ImportError(name)


def test_the_list_is_complete() -> None:
    used = {name for path in SOURCE.rglob("*.py") for name in names_of(ast.parse(path.read_text())) if is_private(name)}
    longest = {name for name in used if not any(other.startswith(f"{name}.") for other in used)}
    assert longest == PRIVATE


@pytest.mark.parametrize("name", sorted(PRIVATE))
def test_it_is_where_it_was(name: str) -> None:
    find(name)
