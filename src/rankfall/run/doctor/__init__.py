"""Checks for `rankfall doctor`. Each reports what it finds and, if something is wrong, what to do."""
