"""The code that a result depends on: digests of modules and of what they import, read from their text."""
