"""A small, consistent configuration of any model type of the transformers library: 4 layers, width 32, 4 heads of 8.

Each number shrinks by a rule for its name: heads divide widths, lists by layer keep one entry of each kind, special tokens stay inside
the vocabulary, patches divide images, parts of a head add up. Values without a rule keep the library's default.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rankfall.errors import RankfallError, suggest

WIDTH, LAYERS, HEADS, HEAD, INNER, VOCABULARY, EXPERTS = 32, 4, 4, 8, 64, 128, 4
PICTURE, PATCH = 64, 8  # sides in pixels


@dataclass(frozen=True)
class Shrunken:
    """Numbers of layers and heads of a default configuration, and the number of layers to keep."""

    layers: int
    heads: int
    depth: int


NOTES = ("transformers_version", "architectures", "_name_or_path", "torch_dtype", "dtype")  # do not affect the model
Rule = Callable[[str, Any, Shrunken, dict[str, Any]], Any]


def by_depth(value: int) -> int:
    """Limit a number of layers to the default depth; `shrink_number` uses the requested depth in its place."""
    return min(value, LAYERS)


def small_config(model_type: str, depth: int = LAYERS, **changes: Any) -> Any:
    """Return a small configuration with at most `depth` layers. `changes` are set last."""
    from transformers import CONFIG_MAPPING

    if model_type not in CONFIG_MAPPING:
        raise RankfallError(f"there is no model type {model_type!r}" + suggest(model_type, CONFIG_MAPPING.keys()))
    return configure(model_type, {**small_values(CONFIG_MAPPING[model_type], depth), **changes})


def configure(model_type: str, values: dict[str, Any]) -> Any:
    """Return a configuration of this type with these values."""
    from transformers import CONFIG_MAPPING

    return CONFIG_MAPPING[model_type](**values)


def small_values(cls: Any, depth: int = LAYERS, rule: Rule | None = None) -> dict[str, Any]:
    """Return the values to pass to a configuration class. `rule` shrinks one value and is `shrunk` by default."""
    rule = rule or shrunk
    return instance_values(cls(), depth, rule)


def instance_values(base: Any, depth: int, rule: Rule) -> dict[str, Any]:
    """Return the small values of a configuration, or of a part of one, that differ from the defaults of its class."""
    values: dict[str, Any] = {}
    parts = getattr(type(base), "sub_configs", {}) or {}
    usual = type(base)().to_dict()
    for name in parts:
        part = getattr(base, name, None)
        if part is not None and hasattr(part, "to_dict"):
            values[name] = {**instance_values(part, depth, rule), "model_type": part.model_type}
    plain = {key: value for key, value in base.to_dict().items() if key not in parts}
    layers = next((value for key, value in plain.items() if COUNT_OF_LAYERS.search(key) and isinstance(value, int)), 0)
    heads = next((value for key, value in plain.items() if HEADS_KEY.search(key) and isinstance(value, int)), 0)
    for key, value in plain.items():
        new = rule(key, value, Shrunken(layers, heads, depth), plain)
        new = value if new is None else new
        if key not in ("model_type", *NOTES) and (new != value or key not in usual or value != usual[key]):
            values[key] = restore_tuples(new, vars(base).get(key))
    return values


def restore_tuples(value: Any, before: Any) -> Any:
    """Convert lists back to tuples where the configuration has tuples. `to_dict` makes lists, but some models need the tuples."""
    if not isinstance(value, list):
        return value
    first = before[0] if isinstance(before, list | tuple) and before else None
    converted = [restore_tuples(item, first) for item in value]
    return tuple(converted) if isinstance(before, tuple) else converted


# values that some types leave open and cannot be built without
MISSING: dict[str, Any] = {
    "n_routed_experts": EXPERTS, "vocab_size": VOCABULARY, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "head_dim": HEAD,
    "prediction_length": 8, "context_length": 16, "num_key_value_heads": HEADS,
}  # fmt: skip
# three axes, whose sections only the code knows
AXES_OF_ROTATION = re.compile(r"^(glm4v|glm46v|glm_image|glm_ocr|glmga|paddleocr|qwen2_vl|qwen2_5_vl|qwen2_5_omni)")
COUNT_OF_LAYERS = re.compile(r"^(num_hidden_layers|n_layers?|num_layers|encoder_layers|depth|num_blocks)$")
HEADS_KEY = re.compile(r"^(num_attention_heads|n_heads?|num_heads|encoder_attention_heads|attention_heads)$")
# the first rule whose pattern matches the name applies; order matters
RULES: tuple[tuple[str, Callable[[int], int]], ...] = (
    (r"upsample_groups$", lambda v: WIDTH),
    (r"num_queries$|num_query_tokens$", lambda v: min(v, 8)),
    (r"index_topk$", lambda v: min(v, 16)),
    (r"(conv|feat_extract|kernel|stride|dilation|channels|codebooks?$|quantizers|downsample|upsample|frame_rate|sampling)", lambda v: v),
    (r"(token|bos|eos|pad|sep|cls|mask|unk)_?(token)?_(id|index)$", lambda v: v if v < VOCABULARY else 3 + v % 100),
    (r"(vocab|vocabulary)_size|^vocab_size|vocab$|^n_vocab", lambda v: min(v, VOCABULARY)),
    (r"codebook_size$|num_embeddings$", lambda v: min(v, VOCABULARY)),
    (r"num_kv_shared_layers|nextn_predict_layers|num_mtp_layers|mtp_num_layers", lambda v: 0),
    (r"first_k_dense_replace|moe_layer_start_index|num_dense_layers|first_dense", lambda v: min(v, 1)),
    (r"(attn|attention).*_(period|interval|every)|sliding_window_pattern|cross_attention_(interval|freq)", lambda v: min(v, 2)),
    (r"(attn|attention)_layer_offset", lambda v: min(v, 1)),
    (r"(key_value_heads|kv_heads|head_kv|num_kv|query_groups|multi_query_group_num)", lambda v: v),
    (r"(^|_)(layers?|depths?|blocks|n_layer|num_layer)s?$|num_.*_layers$|self_attends_per_block$", by_depth),
    (r"(n_group|topk_group|n_groups|num_groups|num_expert_groups?|mamba_n_groups)$", lambda v: 1),
    (r"(experts_per_tok|top_?k|num_selected|moe_k|activated)", lambda v: min(v, 2)),
    (r"(shared_experts)", lambda v: min(v, 1)),
    (r"(intermediate|ffn|inner|mlp|feed_?forward|d_ff).*(size|dim|width|hidden)?$", lambda v: min(v, INNER)),
    (r"experts?$|routed_experts|num_experts", lambda v: min(v, EXPERTS)),
    (r"(lora_rank|_rank|time_step_rank|rank)$", lambda v: min(v, HEAD)),
    (r"mamba_d_ssm$", lambda v: 2 * WIDTH),
    (r"(mamba_(d_head|head_dim)|ssm_head_dim)$", lambda v: 2 * WIDTH // HEADS),
    (r"(qk_rope_head_dim|qk_nope_head_dim|rope_head_dim|nope_head_dim)$", lambda v: HEAD // 2),
    (r"(head_(dim|size|width)|d_kv|d_head|kv_channels|key_dim|value_dim|head_hidden_size)$", lambda v: HEAD),
    (r"rotary_(dim|ndims)$", lambda v: HEAD // 2),
    (r"heads?$|n_head|num_heads|attention_heads", lambda v: min(v, HEADS)),
    (r"(state_size|d_state|state_dim)$", lambda v: min(v, 8)),
    (r"chunk_(size|length)$", lambda v: min(v, 16)),
    (r"(^|_)window(_size|_length)?$|sliding_window|block_(size|length)$", lambda v: min(v, 8)),
    (r"^frames_per_clip$", lambda v: min(v, 8)),
    (r"(image|img|crop)_size$|^input_size$|resolution$", lambda v: PICTURE),
    (r"patch_size$", lambda v: min(v, PATCH)),
    (r"^max_length$|max_source_positions$", lambda v: min(v, 64)),
    (r"(max_.*positions?(_embeddings)?|n_positions|max_.*length|n_ctx|max_seq_len)$", lambda v: min(v, 512)),
    (r"(hidden_size|d_model|d_latents|n_embd|(^|_)dim$|embed_dim|embedding_(size|dim)|embd|hidden_dim|width|hidden)", lambda v: WIDTH),
    (r"^bottleneck_features$", lambda v: WIDTH),
    (r"(_dim|_size)$", lambda v: min(v, WIDTH)),
)  # fmt: skip
COMPILED = tuple((re.compile(pattern), rule) for pattern, rule in RULES)
KEPT = re.compile(
    r"(bucket|query_dim|keypoint_decoder_dim|scale|factor|ratio|expand|type_vocab|_std|eps|theta|prob|dropout|temporal|merge|num_labels|version|group_size)"
)


def shrunk(key: str, value: Any, sizes: Shrunken, plain: dict[str, Any]) -> Any:
    """Return the small value of one key, or None if it stays."""
    if key == "attn_layer_indices":
        return [1, 3]
    if value is None and key in MISSING:
        return MISSING[key]
    if isinstance(value, float) and value > 1 and re.search(r"^(width|depth)_coefficient$", key):
        return 1.0
    # width of the last map, without the width coefficient
    if key == "hidden_dim" and "width_coefficient" in plain and isinstance(value, int):
        return round(value / max(1.0, float(plain["width_coefficient"])))
    if isinstance(value, float) and re.search(r"^(depth|width)_confidence$", key):
        return -1.0  # no early exit and no pruning of tokens, whatever the states are
    if isinstance(value, bool) or value is None or KEPT.search(key):
        return None
    if isinstance(value, int):
        return shrink_number(key, value, sizes, plain)
    if isinstance(value, str) and sizes.layers > sizes.depth and len(value) == sizes.layers and "pattern" in key:
        return "".join(cycle_kinds(list(value), sizes.depth))
    if isinstance(value, list | tuple) and value:
        return shrink_list(key, list(value), sizes, plain)
    if isinstance(value, dict) and key == "rope_parameters" and AXES_OF_ROTATION.search(str(plain.get("model_type"))):
        value = {**value, "mrope_section": []}
    if isinstance(value, dict) and key == "rope_parameters" and str(plain.get("model_type")).startswith("ernie4_5_vl"):
        return {**value, "mrope_section": [1, 1, 2]}  # height and width alternate and need equal sizes
    if isinstance(value, dict) and value and all(str(n).isdigit() and isinstance(v, dict) for n, v in value.items()):
        return shrink_layers(value, sizes, plain)
    if isinstance(value, dict) and "mrope_section" in value:
        rotated = HEAD // 2 * float(value.get("partial_rotary_factor") or 1)
        return {**value, "mrope_section": [2, 1, 1] if rotated == HEAD // 2 else [1, 1, 0]}
    return None


OF_LAYERS_AND_TOKENS = re.compile(
    r"layer|depth|block|period|interval|every|dense|pattern|out_features|indices|vocab|_(id|index)$"
)


def cut(key: str, value: Any, sizes: Shrunken, plain: dict[str, Any]) -> Any:
    """Return the value that cuts layers or vocabulary, or None if the key stays. Every width stays."""
    if isinstance(value, list) and sizes.layers > sizes.depth and len(value) == sizes.layers:
        return cycle_kinds(value, sizes.depth)
    if (
        isinstance(value, dict)
        or not OF_LAYERS_AND_TOKENS.search(key)
        or re.search(r"size$|dim$|ffn", key.replace("vocab_size", ""))
    ):
        return None
    return shrunk(key, value, sizes, plain)


def shrink_layers(value: dict[str, Any], sizes: Shrunken, plain: dict[str, Any]) -> dict[str, Any]:
    """Shrink values that are set for single layers. A kept layer has the values of the first layer of its kind."""
    by_number = {int(number): part for number, part in value.items()}
    places = list(range(sizes.depth))
    kinds = plain.get("layer_types")
    if isinstance(kinds, list) and sizes.layers > sizes.depth and len(kinds) == sizes.layers:
        places = [kinds.index(kind) for kind in cycle_kinds(kinds, sizes.depth)]
    shrunken = {}
    for number, place in enumerate(places):
        part = by_number.get(place, {})
        inside = replace(sizes, heads=part.get("num_attention_heads", sizes.heads))
        if part:
            shrunken[f"{number:02d}"] = {
                name: shrunk(name, entry, inside, plain) or entry for name, entry in part.items()
            }
    return shrunken


def shrink_number(key: str, value: int, sizes: Shrunken, plain: dict[str, Any]) -> int | None:
    """Return the small value of an integer by its name, or None if it stays."""
    if key == "num_time_features":
        return max(value, 1)
    if key == "max_keypoints":  # -1: no limit
        return 2 * PATCH if value < 0 else min(value, 2 * PATCH)
    if value <= 0 or (key == "input_size" and value == 1):  # values per time step, not the size of an image
        return None
    if re.search(r"(key_value_heads|kv_heads|head_kv|num_kv$|query_groups|multi_query_group_num)", key):
        return HEADS if value >= sizes.heads else 1 if value == 1 else 2
    if re.search(r"^(qk_head_dim|query_key_head_dim)$", key):
        return HEAD
    if re.search(r"^head_dim$", key) and "qk_rope_head_dim" in plain:  # the rotated part of a head, or the whole head
        parts = [plain.get(name) or 0 for name in ("qk_rope_head_dim", "qk_nope_head_dim")]
        return HEAD if parts[1] and value > sum(parts) else HEAD // 2
    if key == "n_window" and int(plain.get("max_position_embeddings") or value) < value:
        return None  # positions of a window are counted behind its convolutions
    if key == "window_size" and "spatial_merge_size" in plain:  # a whole number of merged patches per window
        return 2 * min(int(plain.get("patch_size") or PATCH), PATCH) * int(plain["spatial_merge_size"])
    if key == "chunk_length" and "chunk_right_context" in plain:
        return None
    if key == "head_dim" and "state_size" in plain:
        return 2 * WIDTH // HEADS
    for pattern, rule in COMPILED:
        if pattern.search(key):
            return min(value, sizes.depth) if rule is by_depth else rule(value)
    return None


def shrink_list(key: str, value: list[Any], sizes: Shrunken, plain: dict[str, Any]) -> Any:
    """Shrink a list. A list by layer keeps one entry of each kind; a list by stage keeps its ratios."""
    if sizes.layers > sizes.depth and len(value) == sizes.layers:
        entries = cycle_kinds(value, sizes.depth)
        return [shrunk(key, entry, sizes, plain) or entry for entry in entries]
    if key in ("out_features", "out_indices"):
        return rescale_stages(key, value, sizes.depth, plain)
    if "section" in key or "mean" in key or "std" in key or "kernel" in key or "stride" in key or "ratio" in key:
        return None
    if all(isinstance(item, int) and not isinstance(item, bool) for item in value):
        if re.search(r"depth|layers|blocks", key):
            if re.search(r"index|indices|ids|out_|features|idx", key):
                return [min(item, sizes.depth - 1) for item in value]
            return [min(item, 2) for item in value]
        if re.search(r"hidden_sizes|embed_dims|dims$|widths|hidden_size|channels", key):
            return [item if value[0] <= WIDTH else max(8, item * WIDTH // value[0] // 8 * 8) for item in value]
        if re.search(r"(image|img|input)_size|resolution", key):
            return [PICTURE for _ in value]
        if re.search(r"patch_size", key):
            return [min(item, PATCH) for item in value]
        if re.search(r"window", key):
            return [min(item, 8) for item in value][: sizes.depth if len(value) == sizes.layers else None]
        if re.search(r"heads", key):
            return [min(item, 2) for item in value]
        if re.search(r"conv_dim", key):
            return [min(item, WIDTH) for item in value]
    return None


def cycle_kinds(value: list[Any], depth: int) -> list[Any]:
    """Return `depth` entries that cycle through the kinds in the list."""
    kinds: list[Any] = []
    for entry in value:
        if entry not in kinds:
            kinds.append(entry)
    kinds = kinds[:depth]
    return [kinds[n % len(kinds)] for n in range(depth)]


def rescale_stages(key: str, value: list[Any], depth: int, plain: dict[str, Any]) -> list[Any] | None:
    """Return `out_features` or `out_indices` at the same relative depths of fewer layers, None if the stages are no layers."""
    names = plain.get("stage_names") or []
    layers = len(names) - 1
    numbers = [names.index(stage) if stage in names else stage for stage in value]
    if layers != plain.get("num_hidden_layers") or not all(
        isinstance(number, int) and number >= 0 for number in numbers
    ):
        return None
    if len(set(numbers)) != len(numbers) or len(numbers) > depth or max(numbers) <= depth:
        return None
    ranked = sorted(numbers)
    chosen: list[int] = []
    for rank, number in enumerate(ranked):  # distinct, with room for those that follow
        least, most = (chosen[-1] + 1 if chosen else 0), depth - (len(ranked) - 1 - rank)
        chosen.append(min(max(-(-number * depth // layers), least), most))
    places = [chosen[ranked.index(number)] for number in numbers]
    return [names[place] for place in places] if key == "out_features" else places
