"""The words of instructions in the layouts of `layouts.py`, as the kernels read them."""

from collections import namedtuple
from types import FunctionType
from typing import Any

from thousandfold.kernels.inner import joint
from thousandfold.kernels.memory import ahead, double_of, operand_at
from thousandfold.layouts import FIELDS

READ = {".": ("operand_at(like, bases, p, {})", 2), "#": ("double_of(p[{}])", 1), "": ("p[{}]", 1)}


def reader(code: int) -> Any:
    """Return a function that reads the body of an instruction at p: pointers to operands and tables, and numbers, by name."""
    names, lines, at, table = [field.name for field in FIELDS[code]], list[str](), 0, ""
    for field in FIELDS[code]:
        if field.kind == "[":
            text, table = table or f"ahead(p, {at})", f"ahead({field.name}, {field.size})"
        else:
            text, words = READ[field.kind]
            text, at = text.format(at), at + words
        lines.append(f"    {field.name} = {text}")
    text = "\n".join(["def read(like, bases, p):", *lines, f"    return fields({', '.join(names)})"])
    known = {"ahead": ahead, "double_of": double_of, "operand_at": operand_at, "fields": namedtuple("fields", names)}
    return joint(FunctionType(compile(text, "layouts.py", "exec").co_consts[0], known))
