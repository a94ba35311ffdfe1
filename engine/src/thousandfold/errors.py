"""The errors of the engine that are not the fault of a single member."""


class EngineError(Exception):
    """A step that cannot go on: bad input, or an environment in which the engine does not run."""


class NoKernel(EngineError):
    """A GPU for which no kernel can be compiled."""
