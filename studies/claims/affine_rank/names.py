NAME = "affine_rank"
CHANGE, RESIDUAL = (
    "affine rank after minus before, by affine rank before",
    "relative residual after over before, by affine rank before",
)
THROUGH, BESIDE = "space through the origin", "space beside the origin"
