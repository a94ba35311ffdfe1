"""The names of masks in the lines of evidence."""

from typing import Any

ALL_OR_EARLIER: dict[str, Any] = {"every token": "none", "earlier tokens": "causal"}
MASKS: dict[str, Any] = {**ALL_OR_EARLIER, "next neighbours": {"name": "local", "window": 1}}
