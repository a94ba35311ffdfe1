"""One machine for all traced networks. It is compiled once, and runs a flat program of few kinds of instructions, one member after another.

A program is an array of int64 (`codes.py`) that reads and writes buffers at addresses. No code is compiled for a single network.
"""
