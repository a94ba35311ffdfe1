"""The weights of a model: drawn by the library's initialisation, read from safetensors or a package, or fetched layer by layer."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import re
from collections.abc import Iterable
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rankfall.errors import RankfallError
from rankfall.models.source import PACKAGED, ModelSource, folder_of, hub_reachable, one_line, quiet
from rankfall.models.streaming import Streamer, draw_weights, load_weights
from rankfall.random_streams import words
from rankfall.streams.arguments import NoStream

BLOCK = 32  # numbers of a row that share a scale in GGUF's formats of 4 to 8 bits


def model_class(config: Any) -> Any:
    """Return the class without a head. For T5 this is the encoder; other encoder-decoders are not supported."""
    import transformers

    if config.model_type in ("t5", "mt5", "umt5"):
        return getattr(transformers, f"{config.model_type.upper()}EncoderModel")
    if getattr(config, "is_encoder_decoder", False):
        raise NoStream(
            f"model type {config.model_type!r} is an encoder-decoder with cross-attention; of these only T5 is supported, by its encoder"
        )
    return transformers.AutoModel


def make_model(config: Any) -> Any:
    """Build the model of a configuration, with weights drawn by the library."""
    cls = model_class(config)
    prepare_config(config)
    return cls.from_config(config) if hasattr(cls, "from_config") else cls(config)


def prepare_config(config: Any) -> None:
    """Set eager attention and eager experts. These settings change how a model is computed, but not its numbers."""
    config._attn_implementation = "eager"
    if hasattr(config, "num_local_experts") or hasattr(config, "num_experts"):
        config._experts_implementation = "eager"


def initialise(source: ModelSource, config: Any, seed: int) -> nn.Module:
    """Build a model with the library's initialisation, drawn from the seed. All variants of a seed share these weights."""
    with torch.random.fork_rng(devices=[]), quiet(), one_line(source):
        torch.manual_seed(words(seed, "model", "init")[0] >> 1)
        model: nn.Module = make_model(config)
    return model.float().eval()


def stream_model(source: ModelSource, config: Any, seed: int) -> tuple[nn.Module, str, Streamer]:
    """Return a model without storage, the revision of its weights, and the streamer that fetches them."""
    with torch.device("meta"), quiet(), one_line(source):
        model = make_model(config).eval()
    if source.phase == "init":
        return model, "init (streamed)", Streamer(model, draw_weights(model, seed))
    folder = _safe_folder(folder_of(source) or _fetch(source))
    return model, weights_digest(folder), Streamer(model, load_weights(model, folder))


def load_pretrained(source: ModelSource, config: Any) -> tuple[nn.Module, str]:
    """Return a model with its weights in float32, and the revision of the weights."""
    folder, packaged = folder_of(source), PACKAGED.get(source.name)
    file = packaged.weights if packaged is not None else "*.safetensors"
    if folder is not None and packaged is None:
        _safe_folder(folder)
    prepare_config(config)
    revision = weights_digest(folder, file) if folder is not None else ""
    if folder is not None and source.revision not in (None, revision):
        raise RankfallError(
            f"model folder {folder}: revision is {source.revision!r} in the config but {revision!r} on disk"
        )
    with one_line(source), quiet():
        if folder is not None and not file.endswith(".safetensors"):
            model, info = load_packaged(folder / file, config)
        else:
            model, info = model_class(config).from_pretrained(
                folder or source.name,
                config=config,
                revision=source.revision or "main",
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=folder is not None or not hub_reachable(),
                dtype=torch.float32,
                output_loading_info=True,
            )
    # a pooler is not part of the residual stream
    lacking = sorted(key for key in info["missing_keys"] if "pooler" not in key)
    if lacking or info.get("mismatched_keys"):
        names = lacking or sorted(map(str, info["mismatched_keys"]))
        raise RankfallError(
            f"model {source.name!r}: {len(names)} weights are missing or misshapen in the checkpoint, first {names[0]}"
        )
    check_whole(source, model, info.get("unexpected_keys", ()))
    revision = revision or str(getattr(config, "_commit_hash", None) or source.revision or "main")
    if source.quantise is not None:
        quantise_weights(model, source.quantise)
    return model.eval(), " ".join(filter(None, (revision, source.quantise)))


def load_packaged(file: Path, config: Any) -> tuple[Any, dict[str, Any]]:
    """Return a model with the weights of a pickle of tensors or a GGUF file, and the weights that only one of the two has."""
    model = make_model(config).float()
    if file.suffix == ".gguf":
        need_gguf()
        from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

        with redirect_stderr(io.StringIO()):  # a progress bar that the library's switch does not reach
            tensors = load_gguf_checkpoint(str(file), return_tensors=True, model_to_load=model)["tensors"]
    else:
        tensors = torch.load(file, map_location="cpu", weights_only=True)
    prefix = f"{model.base_model_prefix}."
    mismatch = model.load_state_dict(
        {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}, strict=False
    )
    return model, {"missing_keys": mismatch.missing_keys, "unexpected_keys": mismatch.unexpected_keys}


def quantise_weights(model: nn.Module, kind: str) -> None:
    """Round matrices to a format of GGUF, in which blocks of 32 numbers of a row share a scale.

    Positions and token types keep their format, as they do where llama.cpp converts a model.
    """
    need_gguf()
    from gguf import GGMLQuantizationType, dequantize, quantize

    named = [(name, weight) for name, weight in model.named_parameters() if weight.dim() == 2]
    try:
        form = GGMLQuantizationType[kind]
        for name, weight in named:
            if weight.shape[1] % BLOCK == 0 and "position" not in name and "token_type" not in name:
                rounded = dequantize(quantize(weight.detach().numpy(), form), form)
                weight.data.copy_(torch.from_numpy(rounded))
    except (KeyError, NotImplementedError) as error:
        raise RankfallError(
            f"quantise is {kind!r}, to which gguf cannot round\n  fix: Q4_0, Q4_1, Q5_0, Q5_1 or Q8_0"
        ) from error


def need_gguf() -> None:
    if importlib.util.find_spec("gguf") is None:
        raise RankfallError("weights in formats of GGUF need its library\n  fix: pip install 'rankfall[real]'")


def check_whole(source: ModelSource, model: nn.Module, unexpected: Iterable[str]) -> None:
    """Raise an error if a checkpoint has more layers than its config, or weights that are not finite.

    An unused head is no error: no weight of the model has its name with other numbers.
    """
    names = {numberless(name) for name in model.state_dict()}
    prefix = f"{getattr(model, 'base_model_prefix', '')}."
    for name in sorted(unexpected):
        form = numberless(name.removeprefix(prefix))
        if "#" in form and form in names:
            raise RankfallError(
                f"model {source.name!r}: its config has no layer for the weights {name}: config and weights belong to different models"
            )
    for name, weight in model.named_parameters():
        if not bool(weight.isfinite().all()):
            raise RankfallError(
                f"model {source.name!r}: the weights {name} have values that are not finite (NaN or infinite)"
            )


def numberless(name: str) -> str:
    """Replace numbers in a name: `layer.3.bias` -> `layer.#.bias`."""
    return re.sub(r"(?<=\.)\d+(?=\.)", "#", name)


def _fetch(source: ModelSource) -> Path:
    """Download a hub model's safetensors and return their folder in the library's cache."""
    from huggingface_hub import snapshot_download

    with one_line(source):
        return Path(
            snapshot_download(
                source.name,
                revision=source.revision or "main",
                allow_patterns=["*.safetensors", "*.json", "*.txt", "*.model"],
                local_files_only=not hub_reachable(),
            )
        )


def _safe_folder(folder: Path) -> Path:
    """Return the folder. Raise an error if it has no safetensors."""
    if not any(folder.glob("*.safetensors")):
        others = sorted(path.name for path in folder.iterdir() if path.suffix in (".bin", ".pt", ".h5", ".gguf"))
        raise RankfallError(
            f"model folder {folder} has no safetensors weights (other weights: {', '.join(others) or 'none'}); only safetensors are read"
        )
    return folder


def weights_digest(folder: Path, files: str = "*.safetensors") -> str:
    """Return the digest of all bytes of the weights in a folder."""
    digest = hashlib.blake2b(digest_size=10)
    for path in sorted(folder.glob(files)):
        with path.open("rb") as file:
            while block := file.read(2**22):
                digest.update(block)
        digest.update(f"{path.name} {path.stat().st_size}".encode())
    return digest.hexdigest()
