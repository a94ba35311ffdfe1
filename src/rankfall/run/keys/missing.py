"""Imports of a component that are certain to fail, detected before anything is imported.

Only statements that always run count: those of the module itself, and of the local modules that such statements import in turn. Statements
in `try`, `if`, `with` or a function may not run, and neither may those that only type checkers see.
"""

import sys

from rankfall.errors import RankfallError
from rankfall.run.keys.fingerprint import OURS, Sources, is_local
from rankfall.run.keys.imports import ancestors


def check_imports(kind: str, name: str, module: str, sources: Sources) -> None:
    """Raise if importing the module of a component cannot succeed."""
    seen: set[str] = set()
    waiting = list(ancestors(module))
    while waiting:
        source = sources.source(waiting.pop())
        if source is None or source.module in seen:
            continue
        seen.add(source.module)
        for needed, line in source.imports.needed.items():
            surely = source.imports.sure.get(needed) == line  # otherwise it may be an attribute
            if surely and not _exists(needed, sources):
                raise RankfallError(
                    f"{kind} {name!r}: its module {source.module} cannot be imported: {source.file}, line {line}, imports {needed}, "
                    f"which is neither installed nor beside it; install it, or import it in a `try` if the component can do without"
                )
            if _is_local(needed, sources):
                waiting += ancestors(needed)


def _exists(module: str, sources: Sources) -> bool:
    """Return whether a module exists. Of installed packages and the standard library only the first part of the name is checked, since they
    may create submodules when they are imported."""
    top = module.partition(".")[0]
    if not _is_local(module, sources):
        return top in sys.modules or sources.spec(top) is not None
    return sources.spec(module) is not None


def _is_local(module: str, sources: Sources) -> bool:
    top = module.partition(".")[0]
    spec = None if top in sys.stdlib_module_names else sources.spec(top)
    return top in OURS or (spec is not None and is_local(top, spec))
