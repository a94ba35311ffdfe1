"""The checks of `rankfall doctor`. Each reports its result and, if something is wrong, the remedy."""
