NAME = "affine_rank"
CHANGE = "affine rank after minus before, by affine rank before"
RESIDUAL = "relative residual after over before, by affine rank before"
THROUGH, BESIDE = "space through the origin", "space beside the origin"
