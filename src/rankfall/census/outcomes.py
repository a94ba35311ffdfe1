"""The outcomes of model types in a census, and the sizes and interventions that are measured.

A type is *eligible* if the library builds a model with a stream of token vectors from its default configuration, without the network and
without a missing package. This is measured, not listed: the outcomes of `NOT_ELIGIBLE` are results of building and running a type.
`NO_DEFAULTS`: the library's default configuration builds no model at any size, so a checkpoint's configuration is needed.
"""

MEASURED = "measured"
NO_MODEL, NO_PACKAGE, NETWORK, NO_STREAM = "no model", "no package", "needs the network", "no stream"
NO_DEFAULTS = "needs a checkpoint's configuration"
NOT_BUILT, REFUSED, FAILS, OVER = "not built", "refused", "fails", "over a limit"
NOT_ELIGIBLE = (NO_MODEL, NO_PACKAGE, NETWORK, NO_DEFAULTS, NO_STREAM)

SMALL, WIDE = "small", "wide"  # sizes; the third is "released"
FACTORS = {"0_3": 0.3, "3": 3.0, "10": 10.0}  # factors of the weights
CHANGES = tuple(f"{what}_{name}" for what in ("weights", "layers") for name in FACTORS)
