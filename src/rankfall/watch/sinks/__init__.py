"""Sinks for the rows of a watched run, a file each. Each is imported only when used."""
