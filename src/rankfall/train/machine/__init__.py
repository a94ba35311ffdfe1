"""One machine for every traced network: it runs a flat program of few instructions, compiled once, member after member.

A program is an array of int64 (`codes.py`), all it reads and writes lies in buffers at addresses. Nothing is compiled for a network.
"""
