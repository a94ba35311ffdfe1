"""Digests inside files: a file contains the digest of all its bytes, which shows whether it was changed after it was written.

A digest cannot include itself. A file is therefore hashed with zeros in the place of the digest, which then replaces them. A program that
changes the file and keeps its metadata leaves a digest that does not match.
"""

import hashlib

MARK = b"digest of all bytes: "
ZEROS = b"0" * 64
UNSEALED = MARK.decode() + ZEROS.decode()  # placeholder in a file before it is sealed


def seal(content: bytes) -> bytes:
    """Return the content with its digest in place of UNSEALED, which it must contain exactly once."""
    place = _place(content)
    if content.count(MARK) != 1 or content[place : place + len(ZEROS)] != ZEROS:
        raise ValueError("the content must contain the placeholder of its digest exactly once")
    return _with(content, place, hashlib.sha256(content).hexdigest().encode())


def is_whole(content: bytes) -> bool:
    """Return whether a file contains the digest of its bytes."""
    place = _place(content)
    digest = content[place : place + len(ZEROS)]
    return content.count(MARK) == 1 and hashlib.sha256(_with(content, place, ZEROS)).hexdigest().encode() == digest


def _place(content: bytes) -> int:
    return content.rfind(MARK) + len(MARK)


def _with(content: bytes, place: int, digest: bytes) -> bytes:
    return content[:place] + digest + content[place + len(ZEROS) :]
