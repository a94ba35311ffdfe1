"""Tests compute on one thread each, as jobs do: results do not depend on the machine's cores, and processes do not fight over them."""

import os
import signal

from rankfall.code import loader

loader.install()  # as the command line does, before anything else is imported

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported, and for every process that a test starts

# A shell starts its background jobs deaf to Ctrl-C, and everything they start; the tests that press it need to be heard.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
