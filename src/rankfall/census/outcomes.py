"""What became of a model type, and at which sizes and under which changes it is measured.

A type is *eligible* if the library has a model of it with a stream of token vectors, which its own default configuration makes, without
the network and without a package that is absent. That is measured, not listed: the outcomes of `NOT_ELIGIBLE` are what building and
running it came to. `NO_DEFAULTS`: the library's own defaults make no model, at no size, so that it takes a checkpoint's configuration.
"""

MEASURED = "measured"
NO_MODEL, NO_PACKAGE, NETWORK, NO_STREAM = "no model", "no package", "needs the network", "no stream"
NO_DEFAULTS = "needs a checkpoint's configuration"
NOT_BUILT, REFUSED, FAILS, OVER = "not built", "refused", "fails", "over a limit"
NOT_ELIGIBLE = (NO_MODEL, NO_PACKAGE, NETWORK, NO_DEFAULTS, NO_STREAM)

SMALL, WIDE = "small", "wide"  # sizes; the third is "released"
FACTORS = {"0_3": 0.3, "3": 3.0, "10": 10.0}  # that weights are multiplied by
CHANGES = tuple(f"{what}_{name}" for what in ("weights", "layers") for name in FACTORS)
