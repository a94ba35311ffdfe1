"""Around the numbers: from a configuration to jobs that are run, kept and shown. Nothing here computes a number."""
