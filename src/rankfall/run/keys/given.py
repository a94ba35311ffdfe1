"""What a piece of source text gives to which name: assignments, also of several at once, and defaults of parameters."""

import ast
from collections.abc import Iterator


def assignments_in(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names, and attributes of names, with what a node gives them."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _each(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield from _each(target, value)
        case ast.arguments():
            places = [*node.posonlyargs, *node.args]
            defaults = [*zip(places[len(places) - len(node.defaults) :], node.defaults)]
            for argument, default in [*defaults, *zip(node.kwonlyargs, node.kw_defaults)]:
                if default is not None:
                    yield argument.arg, default


def _each(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match target, value:
        case (ast.Tuple(elts=targets) | ast.List(elts=targets), ast.Tuple(elts=values) | ast.List(elts=values)):
            for one, other in zip(targets, values):
                yield from _each(one, other)
        case (_, ast.IfExp(body=one, orelse=other)):
            yield from _each(target, one)
            yield from _each(target, other)
        case (ast.Name() | ast.Attribute(value=ast.Name()), _):
            yield ast.unparse(target), value
