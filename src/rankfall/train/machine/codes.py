"""Numbers of the instructions, of the pointwise operations, and of the buffers. An instruction is its number, its length, and its body."""

PW, RED, LIN, WGRAD, BMM, GEN, GATHER, SCATTER, MASK = range(9)
INSTRUCTIONS = ("PW", "RED", "LIN", "WGRAD", "BMM", "GEN", "GATHER", "SCATTER", "MASK")

OPERATIONS = tuple(
    "ADD SUB MUL DIV MAXI MINI NEG EXP LOG ERF TANH SQRT RSQRT RECIP SIGMOID ABS WHERE "  # noqa: SIM905
    "EQ NE LT LE GT GE AND OR NOT SIN COS EXPM1 LOG1P FLOOR POW COPY SIGN CDF "
    "MULADD MULSUB MULMUL SUBMUL".split()
)
OP = {name: number for number, name in enumerate(OPERATIONS)}
ADD, SUB, MUL, DIV, MAXI, MINI, NEG, EXP, LOG, ERF, TANH, SQRT, RSQRT, RECIP, SIGMOID, ABS, WHERE = range(17)
EQ, NE, LT, LE, GT, GE, AND, OR, NOT, SIN, COS, EXPM1, LOG1P, FLOOR, POW, COPY, SIGN, CDF = range(17, 35)
MULADD, MULSUB, MULMUL, SUBMUL = range(35, 39)  # two at once: x y + z, z - x y, x y z, (x - y) z, each rounded

SUM, MAXIMUM, MINIMUM, ARGMAX = range(4)  # kinds of RED
IN_PLACE, COPIED_IN, COPIED_OUT, ADDED_UP = range(4)  # how PW reads or writes a stream

BLOCK, REGISTERS = 1024, 128  # numbers of a block, blocks of a machine
APART = BLOCK + 80  # numbers from block to block: the nearest cache holds few lines that lie whole pages apart

# Buffers. Of the last four a member has: rates, its key (two words), the step (a word), the norm of its gradient.
ARENA, CONST, PARAM, GRAD, INPUT, TARGET, OUT, FIRST_SLOT, SECOND_SLOT, RATES, KEY, STEP, NORM = range(13)
BUFFERS = 24

# The table of integers that a machine works with: where registers are, positions in dimensions, offsets of terms, of packed rows.
AT, INSIDE = 2 * REGISTERS, 2 * REGISTERS + 32
TERMS_A, TERMS_B, NEAR = 512, 1024, 2048
TABLE = 2**17
ROOM = 2**21  # numbers behind the registers, for what is put side by side
