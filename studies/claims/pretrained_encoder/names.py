"""Names that the experiment and the rule share."""

RANK, SINKS, SKIPS = "pretrained_states_keep_full_rank", "sinks_and_spikes_come_apart", "trained_skips_keep_rank"
SHARE = "rank of the states over the number of tokens, by layer"
SMALLEST = "log10 of the smallest singular value of the states, by layer"
COSINE = "mean absolute cosine of two tokens, by layer"
SPIKE = "largest entry of the states over the median one, by layer"
SINK = "largest mean weight that a head gives one token, by layer"
RESIDUAL = "relative residual, by layer"
ALL, NO_FIRST, NO_LARGEST = "all tokens", "without the first token", "without the largest channels"
PARTS = (ALL, NO_FIRST, NO_LARGEST)
CUT = "attention alone, the same weights"
STATES = "states"
EVERY, FIRST, SEPARATOR = "any token", "first token", "separators"
FLOOR = 1e-13  # of a relative residual in float64: smaller values are rounding, and are null
