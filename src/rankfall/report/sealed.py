"""Digests inside files: a file holds the digest of all its bytes, and so says by itself whether it is as it was written.

A digest cannot be part of what it is of. So a file is written with zeros in its place, which count, and the digest is put there. Whoever
changes the file by any program, and keeps what it says of its making, leaves another digest than that of the bytes.
"""

import hashlib

MARK = b"digest of all bytes: "
ZEROS = b"0" * 64
UNSEALED = MARK.decode() + ZEROS.decode()  # what a file is written with


def seal(content: bytes) -> bytes:
    """The file with its digest; it has UNSEALED exactly once."""
    place = _place(content)
    if content.count(MARK) != 1 or content[place : place + len(ZEROS)] != ZEROS:
        raise ValueError("a file is sealed once, where it says so once")
    return _with(content, place, hashlib.sha256(content).hexdigest().encode())


def is_whole(content: bytes) -> bool:
    """Whether a file has the digest of its bytes."""
    place = _place(content)
    digest = content[place : place + len(ZEROS)]
    return content.count(MARK) == 1 and hashlib.sha256(_with(content, place, ZEROS)).hexdigest().encode() == digest


def _place(content: bytes) -> int:
    return content.rfind(MARK) + len(MARK)


def _with(content: bytes, place: int, digest: bytes) -> bytes:
    return content[:place] + digest + content[place + len(ZEROS) :]
