"""The table of pointwise operations. One entry is all that an operation needs:

- `aten`: names of the ATen operations that it computes, element by element (the result has the broadcast shape, the gradient is PyTorch's);
- `text`: its value, as an expression of the vectors x, y and z in `kernels/` and of the numbers x, y and z in a GPU's C++;
- `gpu`: the C++ text, where it is another. R(f) is the function f of the number format.

Truth values are 1 and 0. As an operand, any number other than 0 is true. Fused pairs round after each operation, as one after another does.
"""

import re
from dataclasses import dataclass

OPERAND = re.compile(r"\b[xyz]\b")


@dataclass(frozen=True)
class Operation:
    name: str
    aten: str
    text: str
    gpu: str = ""

    @property
    def operands(self) -> int:
        return len(set(OPERAND.findall(self.text)))


def function_of_gpu(name: str, aten: str, text: str) -> Operation:
    """Return an operation that has a function of C's library on a GPU."""
    return Operation(name, aten, text, f"R({name.lower()})(x)")


def comparison(name: str, sign: str) -> Operation:
    return Operation(name, name.lower(), f"as_numbers(x {sign} y, x)", f"real(x {sign} y)")


OPERATIONS = (
    Operation("ADD", "add", "x + y"),
    Operation("SUB", "sub", "x - y"),
    Operation("MUL", "mul", "x * y"),
    Operation("DIV", "div", "x / y"),
    Operation("MAXI", "maximum", "larger(x, y)"),
    Operation("MINI", "minimum", "smaller(x, y)"),
    Operation("NEG", "neg", "-x"),
    Operation("ABS", "abs", "absolute(x)", "R(fabs)(x)"),
    Operation("SIGN", "sign", "sign(x)"),
    Operation("RECIP", "reciprocal", "1.0 / x", "real(1) / x"),
    Operation("RSQRT", "rsqrt", "1.0 / square_root(x)", "real(1) / R(sqrt)(x)"),
    Operation("SIGMOID", "sigmoid", "logistic(x)"),
    Operation("CDF", "normal_below", "normal_below(x, y)", "normal_below(x)"),
    Operation("POW", "", "power(x, y)", "R(pow)(x, y)"),
    function_of_gpu("EXP", "exp", "exponential(x)"),
    function_of_gpu("EXPM1", "expm1", "exponential_less_one(x)"),
    function_of_gpu("LOG", "log", "logarithm(x)"),
    function_of_gpu("LOG1P", "log1p", "logarithm_of_more(x)"),
    function_of_gpu("ERF", "erf", "error_function(x)"),
    function_of_gpu("TANH", "tanh", "hyperbolic_tangent(x)"),
    function_of_gpu("SQRT", "sqrt", "square_root(x)"),
    function_of_gpu("SIN", "sin", "sine(x)"),
    function_of_gpu("COS", "cos", "cosine(x)"),
    function_of_gpu("FLOOR", "floor", "floor(x)"),
    comparison("EQ", "=="),
    comparison("NE", "!="),
    comparison("LT", "<"),
    comparison("LE", "<="),
    comparison("GT", ">"),
    comparison("GE", ">="),
    Operation(
        "AND",
        "logical_and bitwise_and",
        "as_numbers((x != 0.0) & (y != 0.0), x)",
        "real(x != real(0) && y != real(0))",
    ),
    Operation(
        "OR", "logical_or bitwise_or", "as_numbers((x != 0.0) | (y != 0.0), x)", "real(x != real(0) || y != real(0))"
    ),
    Operation("NOT", "logical_not bitwise_not", "as_numbers(x == 0.0, x)", "real(x == real(0))"),
    Operation("WHERE", "", "select(x != 0.0, y, z)", "x != real(0) ? y : z"),
    Operation("COPY", "", "x"),
    Operation("MULADD", "", "x * y + z"),
    Operation("MULSUB", "", "z - x * y"),
    Operation("MULMUL", "", "x * y * z"),
    Operation("SUBMUL", "", "(x - y) * z"),
)
CODES = {operation.name: code for code, operation in enumerate(OPERATIONS)}
