"""Output for terminals, in which control characters of names and messages are escaped so that they cannot steer the terminal."""

import re
from typing import Any

# Control characters except line breaks and tabs, and those that reverse the direction of writing, which can disguise a name.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Replace each control character by its escape sequence."""
    return CONTROLS.sub(lambda control: repr(control[0])[1:-1], text)


class Cleaning:
    """A wrapper of a stream that escapes control characters in everything written to it."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text with its control characters escaped."""
        self.stream.write(clean(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write texts with their control characters escaped."""
        for line in lines:
            self.write(line)

    @property
    def rich_proxied_file(self) -> Any:
        """The stream to which rich writes colours; rich receives text that is already clean."""
        return self.stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
