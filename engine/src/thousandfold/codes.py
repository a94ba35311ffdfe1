"""Codes of instructions and buffers. An instruction consists of its code, its length and its body."""

PW, RED, LIN, WGRAD, BMM, GEN, GATHER, SCATTER, MASK = range(9)
INSTRUCTIONS = ("PW", "RED", "LIN", "WGRAD", "BMM", "GEN", "GATHER", "SCATTER", "MASK")

SUM, MAXIMUM, MINIMUM, ARGMAX = range(4)  # kinds of RED
IN_PLACE, COPIED_IN, COPIED_OUT, ADDED_UP = range(4)  # how PW reads or writes a stream

BLOCK, REGISTERS = 1024, 128  # numbers per block, blocks per machine
APART = BLOCK + 80  # numbers from block to block: the L1 cache holds few lines at a distance of whole pages

# Buffers. The last four hold for a member: rates, key (two words), step (one word), norm of the gradient.
ARENA, CONST, PARAM, GRAD, INPUT, TARGET, OUT, FIRST_SLOT, SECOND_SLOT, RATES, KEY, STEP, NORM = range(13)
BUFFERS = 24

# The machine's table of integers: addresses of registers, addresses that registers were filled from, positions in dimensions, offsets of
# terms and of packed rows.
FILLED, AT, INSIDE = REGISTERS, 2 * REGISTERS, 2 * REGISTERS + 32
TERMS_A, TERMS_B, NEAR = 512, 1024, 2048
TABLE = 2**17
ROOM = 2**21  # numbers behind the registers, for packed operands
