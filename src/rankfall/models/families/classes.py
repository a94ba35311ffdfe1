"""Which class of the transformers library is the model of a configuration: what AutoModel makes, else the barest class made for it.

Parts of models have configurations of their own (the text encoder of a CLIP) that AutoModel does not know. Their class is found in the
modeling files beside the configuration: of those whose `config_class` it is, the one with the shortest name, without a head.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from torch import nn

from rankfall.errors import RankfallError


class NoModel(RankfallError):
    """A configuration that no model of the library is made of by itself."""


def maker(config: Any) -> Callable[[Any], nn.Module]:
    """A function from the configuration to a model with weights drawn by the library."""
    from transformers import AutoModel
    from transformers.models.auto.modeling_auto import MODEL_MAPPING

    if type(config) in MODEL_MAPPING:
        made: Callable[[Any], nn.Module] = AutoModel.from_config
        return made
    found = classes_of(type(config))
    if not found:
        raise NoModel(
            f"the library has a configuration {type(config).__name__}, and no model that is made of one by itself"
        )
    return found[0]._from_config  # type: ignore[no-any-return, attr-defined]


def classes_of(config: type) -> list[type[nn.Module]]:
    """Models made for a configuration class, the barest first."""
    from transformers import PreTrainedModel

    found = []
    for module in modeling_files(config):
        for name, value in vars(module).items():
            if (
                isinstance(value, type)
                and issubclass(value, PreTrainedModel)
                and value.__module__ == module.__name__
                and getattr(value, "config_class", None) is config
                and "forward" in vars(value)
            ):
                found.append((("For" in name, not name.endswith("Model"), len(name), name), value))
    return [value for _, value in sorted(found, key=lambda one: one[0])]


def modeling_files(config: type) -> list[ModuleType]:
    """The modules `modeling_*` in the folder of a configuration, imported as the library does: by asking its package for their classes."""
    name = config.__module__.rpartition(".")[0]
    package = sys.modules[name]
    homes: dict[str, str] = getattr(package, "_class_to_module", {})
    for home in sorted(set(homes.values())):
        if home.startswith("modeling_") and not home.startswith(("modeling_tf", "modeling_flax")):
            getattr(package, next(one for one in homes if homes[one] == home))
    return [module for one, module in sorted(sys.modules.items()) if one.startswith(f"{name}.modeling_")]
