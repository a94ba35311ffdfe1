"""Check of whether the library can build a model from its default configuration of a type."""

from __future__ import annotations

import re

import torch

from rankfall.errors import describe_error
from rankfall.models.families.classes import maker
from rankfall.models.hub import quiet

STORAGE = re.compile(r"meta tensor|on meta|Meta|no data|item\(\)|NotImplementedError|fake")


def refused_defaults(kind: str) -> str:
    """Return the library's error on building a model of this type from its default configuration. The result is empty if there is
    none, or if only a model with storage could tell.
    """
    from transformers import CONFIG_MAPPING

    try:
        with quiet(), torch.device("meta"):
            config = CONFIG_MAPPING[kind]()
            maker(config)(config)
    except Exception as error:  # whatever the library raises
        line = describe_error(error, 400)
        return "" if STORAGE.search(line) else line
    return ""
