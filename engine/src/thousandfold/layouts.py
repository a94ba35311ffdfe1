"""The layouts of all instructions but PW: what the words after code and length are. Lowerings fill the fields by name, `program/emit.py`
writes them, and `gpu/calls.py` reads them; the kernels read them by position.

`x.` is an operand (buffer and offset), `scale#` the bits of a float64, `io[rows]` a table of so many offsets, any other name an integer.
"""

import re
from dataclasses import dataclass

from thousandfold.codes import BMM, GATHER, GEN, LIN, MASK, RED, SCATTER, WGRAD

PRODUCT = "oa[outer] ob[outer] oc[outer] ma[rows] ka[terms] nb[columns] kb[terms] mc[rows] nc[columns]"
TEXT = {
    RED: "kind out. x. rows run terms together scale# io[rows] oo[rows] ro[terms]",
    LIN: "x. w. out. bias. biased columns terms rows run kx[terms] kw[terms] nw[columns] nc[columns] ob[columns] "
    "rx[rows] rw[rows] rc[rows]",
    WGRAD: "a. b. out. rows columns terms run ma[rows] nb[columns] mc[rows] ka[terms] kb[terms]",
    BMM: f"a. b. out. la lb outer rows columns terms lanes {PRODUCT}",
    GEN: f"a. b. out. outer rows columns terms {PRODUCT}",
    GATHER: "x. index. out. places features stride io[places] xo[places] oo[places] xd[features] od[features]",
    SCATTER: "out. index. v. zeros adds places features stride io[places] xo[places] vo[places] xd[features] vd[features]",
    MASK: "out. site threshold scale# size rows run stride from[rows] into[rows]",
}


@dataclass(frozen=True)
class Field:
    name: str
    kind: str  # ".", "#", "[" or ""
    size: str  # name of a table's size


FIELDS = {
    code: [Field(*found) for found in re.findall(r"(\w+)([.#\[]?)(?:(\w+)\])?", text)] for code, text in TEXT.items()
}
