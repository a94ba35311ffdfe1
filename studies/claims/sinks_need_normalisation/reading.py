"""Read the evidence of `sinks_need_normalisation` for the rules that share it."""

SOFTMAX, OWN_KEY = "softmax", "softmax with a learned key of no value"
SINK = 0.3  # the limit of the source
A_SINK = "softmax models with a sink in every seed: larger ones, trained for longer and on text, as the source's"
