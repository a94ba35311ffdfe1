SECOND = "second singular value of the map, by temperature"
KEPT = "correlation of the tokens' products with those without noise, by log10 of signal to noise"
SINKHORN, SOFTMAX = "Sinkhorn", "softmax"
NORMED, PLAIN = "layer norm", "no norm"
