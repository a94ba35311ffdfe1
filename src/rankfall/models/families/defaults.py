"""Whether the library's own default configuration of a type makes a model."""

from __future__ import annotations

import re

import torch

from rankfall.errors import describe_error
from rankfall.models.families.classes import maker
from rankfall.models.hub import quiet

STORAGE = re.compile(r"meta tensor|on meta|Meta|no data|item\(\)|NotImplementedError|fake")


def refused_defaults(kind: str) -> str:
    """Why the library's own default configuration makes no model of this type; nothing if it does, or if it takes storage to know."""
    from transformers import CONFIG_MAPPING

    try:
        with quiet(), torch.device("meta"):
            config = CONFIG_MAPPING[kind]()
            maker(config)(config)
    except Exception as error:  # whatever the library raises
        line = describe_error(error, 400)
        return "" if STORAGE.search(line) else line
    return ""
