"""The one exception a user is meant to read: a single line that says what is wrong and what to do about it."""


class RankfallError(Exception):
    """Bad input or a broken environment, found before any work starts. The command line prints it without a traceback."""
