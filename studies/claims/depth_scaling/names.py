NAME = "depth_scaling"
COSINE = "cosine of two tokens after the last layer, by layers"
SCALED, PLAIN = "branches by 1/sqrt(L)", "branches as they are, norms after"
