NAME = "delta_erasure"
RESIDUAL = "log10 of the relative residual, by layer"
ADDED, ERASED, REFLECTED = "added", "erased (b = 1)", "reflected (b = 2)"
KINDS = {ADDED: 0.0, ERASED: 1.0, REFLECTED: 2.0}
