"""What is written for people to read: a name or a message that holds control characters must not steer their terminal."""

import re
from typing import Any

# All but line breaks and tabs; and what turns the direction of writing round, so that a name looks like another.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Each control character as it would stand in a program."""
    return CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


class Cleaning:
    """A stream to which everything is written clean."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(clean(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    @property
    def rich_proxied_file(self) -> Any:
        """Where rich writes colours; it is given texts that are clean."""
        return self.stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
