NAME = "score_scale_slows"
SPREAD = "log10 of the spread of tokens, by layer"
SCALES = (0.125, 1.0, 8.0)  # of scores: 1/sqrt(d) for d of 64, 1 and 1/64, as published
