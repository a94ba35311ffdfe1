"""The weights in a folder of safetensors, one by one, under the model's names.

The library renames many weights when it loads them. It joins some weights from several tensors of a checkpoint (single experts) and splits
some tensors into several weights (queries, keys and values in one matrix). This module applies the library's rules to one weight at a time,
so that only its tensors are in memory.
"""

from __future__ import annotations

import copy
import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from rankfall.errors import RankfallError


@dataclass
class WeightRecipe:
    """The tensors from which one or several weights of the model are computed."""

    first: str  # name of the first of these weights
    converter: Any = None  # the library's; None: the tensor is not converted
    sources: list[tuple[str, str | None]] = field(default_factory=list)  # keys, and the pattern that each matched


class StoredWeights:
    """Weights by name. The results of the last conversion are kept, since weights from one recipe are read one after the other."""

    def __init__(self, model: nn.Module, folder: Path) -> None:
        self._model = model
        self.where = tensor_files(folder)
        self._recipes = recipes_of(model, list(self.where))
        self._last_conversion: tuple[str, dict[str, Tensor]] = ("", {})

    def __contains__(self, name: str) -> bool:
        return name in self._recipes

    def key_of(self, name: str) -> str:
        """Return the key of the tensor in the files, or the first of several."""
        return self._recipes[name].sources[0][0]

    def tensor(self, name: str) -> Tensor:
        """Return a new tensor in the dtype of the file."""
        recipe = self._recipes[name]
        if recipe.converter is None:
            return self._read([recipe.sources[0][0]])[0]
        if self._last_conversion[0] != recipe.first:
            self._last_conversion = (recipe.first, self._converted(recipe))
        return self._last_conversion[1][name]

    def _converted(self, recipe: WeightRecipe) -> dict[str, Tensor]:
        converter = copy.deepcopy(recipe.converter)
        for (key, pattern), tensor in zip(recipe.sources, self._read([key for key, _ in recipe.sources])):
            converter.add_tensor(recipe.first, key, pattern, tensor)
        converted = converter.convert(recipe.first, model=self._model, config=self._model.config)
        return {name: value[0] if isinstance(value, list) else value for name, value in converted.items()}

    def _read(self, keys: list[str]) -> list[Tensor]:
        """Return the tensors of these keys. Each file is opened once."""
        from safetensors import safe_open

        opened: dict[Path, Any] = {}
        with ExitStack() as files:
            tensors = []
            for key in keys:
                path = self.where[key]
                if path not in opened:
                    opened[path] = files.enter_context(safe_open(path, framework="pt"))
                tensors.append(opened[path].get_tensor(key))
            return tensors


def recipes_of(model: Any, keys: list[str]) -> dict[str, WeightRecipe]:
    """Return name of a weight -> recipe, by the library's rules for this model."""
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import WeightConverter, WeightRenaming, dot_natural_key, rename_source_key

    rules = get_model_conversion_mapping(model)
    renamings = [rule for rule in rules if isinstance(rule, WeightRenaming)]
    converters = [rule for rule in rules if isinstance(rule, WeightConverter)]
    by_pattern = {pattern: converter for converter in converters for pattern in converter.source_patterns}
    prefix, weights = getattr(model, "base_model_prefix", ""), model.state_dict()
    weights |= dict.fromkeys(name for name, _ in model.named_parameters(remove_duplicate=False))
    names = dict.fromkeys(weights, True)  # the library looks names up in it
    recipes: dict[str, WeightRecipe] = {}
    for key in sorted(keys, key=dot_natural_key):
        name, pattern = rename_source_key(key, renamings, converters, prefix, names)
        if name not in names and key in names:
            name, pattern = rename_source_key(key, [], [], base_model_prefix=prefix, meta_state_dict=names)
        converter = by_pattern[pattern] if pattern is not None else None
        if name not in names:
            continue
        recipe = recipes.setdefault(name, WeightRecipe(name, converter))
        recipe.sources.append((key, pattern))
        if converter is not None:
            for target in converter.target_patterns[1:]:
                recipes[name.replace(converter.target_patterns[0], target)] = recipe
    return recipes


def tensor_files(folder: Path) -> dict[str, Path]:
    """Return tensor name -> file."""
    from safetensors import SafetensorError, safe_open

    index = folder / "model.safetensors.index.json"
    if index.exists():
        return {key: folder / file for key, file in json.loads(index.read_text())["weight_map"].items()}
    files: dict[str, Path] = {}
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, framework="pt") as file:
                files |= dict.fromkeys(file.keys(), path)
        except SafetensorError as error:
            raise RankfallError(f"{path} is damaged ({error})") from error
    return files
