"""Operations that become one: two of which the second alone reads what the first gives."""

from rankfall.train.machine.codes import ADD, EXP, MUL, MULADD, MULMUL, MULSUB, SUB, SUBMUL
from rankfall.train.machine.program.emit_pointwise import Operand, Operation, pair

X, Y, Z, OUT = (("stream", i) for i in range(4))
FIRST, SECOND = ("passing", 1), ("passing", 2)


def paired(*operations: Operation, summed: tuple[Operand, ...] = ()) -> list[Operation]:
    return pair(operations, summed)


def test_a_product_joins_what_reads_it() -> None:
    product = (MUL, FIRST, [X, Y])
    assert paired(product, (ADD, OUT, [FIRST, Z])) == [(MULADD, OUT, [X, Y, Z])]
    assert paired(product, (ADD, OUT, [Z, FIRST])) == [(MULADD, OUT, [X, Y, Z])]
    assert paired(product, (SUB, OUT, [Z, FIRST])) == [(MULSUB, OUT, [X, Y, Z])]
    assert paired(product, (MUL, OUT, [Z, FIRST])) == [(MULMUL, OUT, [X, Y, Z])]
    assert paired((SUB, FIRST, [X, Y]), (MUL, OUT, [Z, FIRST])) == [(SUBMUL, OUT, [X, Y, Z])]


def test_what_is_read_elsewhere_stays() -> None:
    product, square = (MUL, FIRST, [X, Y]), (MUL, OUT, [FIRST, FIRST])
    assert paired(product, square) == [product, square]
    twice = [product, (EXP, SECOND, [FIRST]), (ADD, OUT, [FIRST, SECOND])]
    assert paired(*twice) == twice
    added = (ADD, OUT, [FIRST, Z])
    assert paired(product, added, summed=(FIRST,)) == [product, added]
    stored = [(MUL, Z, [X, Y]), (ADD, OUT, [Z, X])]
    assert paired(*stored) == stored
    assert paired(product, (SUB, OUT, [FIRST, Z])) == [product, (SUB, OUT, [FIRST, Z])]


def test_what_is_overwritten_meanwhile_is_read_before() -> None:
    operations = [(MUL, FIRST, [X, Y]), (EXP, X, [Z]), (ADD, OUT, [FIRST, Z])]
    assert paired(*operations) == operations
