"""The headline numbers of all studies beside each other."""
