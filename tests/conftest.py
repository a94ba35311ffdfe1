"""Tests compute on one thread each, as jobs do: results do not depend on the machine's cores, and processes do not fight over them."""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported, and for every process that a test starts
