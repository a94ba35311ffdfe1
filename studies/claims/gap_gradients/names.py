NAME = "gap_gradients"
GRADIENT = "|dX_L / dW_1| over |dX_1 / dW_1|, by layers"
KINDS = {
    "A": (0.0, 1.0, False, False),
    "A, mean off": (0.0, 1.0, True, False),
    "A + skip": (1.0, 1.0, False, False),
    "A + skip, doubled as published": (1.0, 2.0, False, False),
    "A + skip, mean off": (1.0, 1.0, True, False),
    "A + skip + norm": (1.0, 1.0, False, True),
}
