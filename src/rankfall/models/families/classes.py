"""The class of the transformers library for a configuration: AutoModel's choice, else the barest class with that `config_class`.

Some parts of models have configurations that AutoModel does not know (the text encoder of a CLIP). Their class is in the modeling
files beside the configuration. Classes without a head come first, then those with shorter names.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import nn

from rankfall.errors import RankfallError, describe_error
from rankfall.models.source import quiet


class NoModel(RankfallError):
    """An error for a configuration from which the library builds no model by itself."""


def maker(config: Any) -> Callable[[Any], nn.Module]:
    """Return a function that builds a model from the configuration, with weights drawn by the library."""
    from transformers import AutoModel
    from transformers.models.auto.modeling_auto import MODEL_MAPPING

    if type(config) in MODEL_MAPPING:
        build: Callable[[Any], nn.Module] = AutoModel.from_config
        return build
    classes = classes_of(type(config))
    if not classes:
        raise NoModel(
            f"the library has a configuration {type(config).__name__}, and no model that is made of one by itself"
        )
    return classes[0]._from_config  # type: ignore[no-any-return, attr-defined]


def classes_of(config: type) -> list[type[nn.Module]]:
    """Return the model classes for a configuration class, the barest first."""
    from transformers import PreTrainedModel

    ranked = []
    for module in modeling_files(config):
        for name, value in vars(module).items():
            if (
                isinstance(value, type)
                and issubclass(value, PreTrainedModel)
                and value.__module__ == module.__name__
                and getattr(value, "config_class", None) is config
                and "forward" in vars(value)
            ):
                ranked.append((("For" in name, not name.endswith("Model"), len(name), name), value))
    return [value for _, value in sorted(ranked, key=lambda pair: pair[0])]


def modeling_files(config: type) -> list[ModuleType]:
    """Return the modules `modeling_*` in the folder of a configuration. Asking the package for their classes imports them."""
    name = config.__module__.rpartition(".")[0]
    package = sys.modules[name]
    homes: dict[str, str] = getattr(package, "_class_to_module", {})
    for home in sorted(set(homes.values())):
        if home.startswith("modeling_") and not home.startswith(("modeling_tf", "modeling_flax")):
            getattr(package, next(key for key in homes if homes[key] == home))
    return [module for key, module in sorted(sys.modules.items()) if key.startswith(f"{name}.modeling_")]


# errors that only the lack of storage causes
STORAGE = re.compile(r"meta tensor|on meta|Meta|no data|item\(\)|NotImplementedError|fake")


def refused_defaults(kind: str) -> str:
    """Return the library's error on building a model of this type from its default configuration.

    The result is empty if there is no error, or if only a model with storage could show it.
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
