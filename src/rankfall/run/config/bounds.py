"""Limits of a configuration's size. Anything beyond them is a mistake."""

NAME = 100  # letters of a name that becomes part of file names: file systems allow 255, and suffixes need room
CELLS = 1_000_000
