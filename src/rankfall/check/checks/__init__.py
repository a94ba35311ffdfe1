"""One file a check. Importing a file registers its check."""
