"""The check of attention weights, by head."""

from rankfall.check.heads import HeadNumbers
from rankfall.check.named import Limit, Result, failed, named, passed, skipped, warned
from rankfall.check.recording import RecordedStream

ONE_HOT = Limit(
    0.95,
    "a mean largest weight above this is one-hot; all heads of a layer fail, single heads warn",
    "our choice: the gradient of a softmax scales with w (1 - w); entropy collapse (Zhai et al. 2023, arXiv:2303.06296)",
)
COLLAPSED = Limit(
    0.05,
    "and the entropy is below this share of that of uniform weights",
    "our choice: it tells weights of one token from weights of one token and a long tail",
)
LOGIT = Limit(
    100,
    "a score above this warns",
    "our choice: bfloat16 resolves such a score to 0.5; growing scores precede divergence (Dehghani et al. 2023, arXiv:2302.05442)",
)
SILENT = Limit(
    1e-9,
    "a head whose gradient at queries or keys is below this share of the largest of its layer fails",
    "our choice: far above the rounding of float64, and below the gradients of all heads of trained models",
)
SINK = Limit(
    0.5,
    "a share of the first token above this in most heads warns",
    "our choice; sinks on the first token are those of Xiao et al. 2023, arXiv:2309.17453",
)


SCALE = Limit(
    0.1,
    "a scale of the scores that differs by more than this share from 1/sqrt(d), with d the size of a head, warns",
    "Vaswani et al. 2017, arXiv:1706.03762; a root of another size differs by more; muP divides by d, T5 scales its weights",
)


@named("attention-alive", ONE_HOT, COLLAPSED, SILENT, LOGIT, SCALE, SINK)
def attention_alive(seen: RecordedStream) -> Result:
    """Does attention read more than one token, in every head?

    By head, over rows that see at least two tokens: entropy over the log of the number of visible tokens, largest weight, share of the
    first token and mean distance. Weights come from an explicit softmax or from PyTorch's fused functions. A softmax over another axis than
    the one over which the product with the values sums fails, since rows of weights then do not sum to one, and so does attention of which
    no token reads another. A head without gradient at its queries or keys is dead: its values or its output are zero, or its queries or
    keys. The scale of scores is the product of all numbers that multiply queries, keys and scores; it is not judged behind a norm of
    queries or a learned scale.
    """
    mixing = {branch.name for branch in seen.flow.branches if branch.mixes}
    if inside := [pair for pair in seen.within if not mixing or pair[0].name in mixing]:
        branch, size = inside[0]
        return failed(
            f"no token reads another in the attention of layer {branch.layer}, which weighs {size} x {size} parts of one token: are heads "
            "and tokens not transposed, or is batch_first=True missing?", seen.path_of(branch),
        )  # fmt: skip
    if not seen.heads:
        return skipped(seen.report.reasons.get("attention", "no weights are known"))
    if wrong := [one for one in seen.heads if one.sideways]:
        return failed(
            f"the softmax of layer {wrong[0].layer} is over axis {wrong[0].sideways[0]} of the weights, and their product with the values "
            "sums over another", wrong[0].where,
        )  # fmt: skip
    total = sum(len(one.entropy) for one in seen.heads)
    dead = [(one, hot) for one in seen.heads if (hot := one_hot(one))]
    whole = [one for one, hot in dead if len(hot) == len(one.entropy)]
    if whole:
        one = whole[0]
        return failed(
            f"all {len(one.entropy)} heads of layer {one.layer} read one token: largest weight {float(one.largest.mean()):.3f}, entropy "
            f"{float(one.entropy.mean()):.2g} of uniform", one.where,
        )  # fmt: skip
    silent = [(one, which) for one in seen.heads if (which := silent_heads(seen, one))]
    if silent:
        one, which = silent[0]
        return failed(
            f"{sum(len(which) for _, which in silent)} of {total} heads are dead: layer {one.layer}, head {', '.join(map(str, which))}: no "
            "gradient at its queries or keys", one.where,
        )  # fmt: skip
    if dead:
        one, hot = dead[0]
        heads = ", ".join(map(str, hot))
        return warned(
            f"{sum(len(hot) for _, hot in dead)} of {total} heads read one token: layer {one.layer}, head {heads}",
            one.where,
        )
    loud = max(seen.heads, key=lambda one: one.logit if one.logit == one.logit else 0.0)
    if loud.logit > LOGIT:
        return warned(f"the largest score is {loud.logit:.3g}, in layer {loud.layer}", loud.where)
    if odd := [(one, said) for one in seen.heads if (said := describe_scale(seen, one))]:
        return warned(odd[0][1], odd[0][0].where)
    sinks = sum(int((one.first > SINK).sum()) for one in seen.heads) if seen.report.tokens > 3 else 0
    most = max(seen.heads, key=lambda one: float(one.first.max()))
    if 2 * sinks > total:
        return warned(
            f"{sinks} of {total} heads rest on the first token, up to {float(most.first.max()):.0%}", most.where
        )
    least = min(float(one.entropy.min()) for one in seen.heads)
    apart = sum(float(one.distance.mean()) for one in seen.heads) / len(seen.heads)
    return passed(f"{total} heads; entropy at least {least:.2f} of uniform, mean distance {apart:.1f} tokens")


def describe_scale(seen: RecordedStream, heads: HeadNumbers) -> str:
    """Return a sentence on scores with another scale than 1/sqrt(d), or '' of usual ones and where norms or weights scale them."""
    scale, size = heads.scale.factor, heads.scale.size
    if not size or not scale > 0 or abs(scale * size**0.5 - 1) <= SCALE or (scale == 1 and not heads.scale.even):
        return ""
    tokens, width = seen.report.tokens, seen.flow.width
    sources = {
        len(heads.entropy) ** -0.5: f"by the root of {len(heads.entropy)} heads", tokens**-0.5: f"by the root of {tokens} tokens",
        width**-0.5: f"by the root of the width {width}", size**0.5: "multiplied by the root, not divided",
        1 / size: "1/d: right under muP alone, or scaled twice?", 1.0: "that is, not scaled",
    }  # fmt: skip
    source = next((said for value, said in sources.items() if abs(scale / value - 1) < 1e-3), "is that meant?")
    return f"scores of layer {heads.layer} are q k times {scale:.3g} ({source}); usual is 1/sqrt({size}) = {size**-0.5:.3g}"


def one_hot(heads: HeadNumbers) -> list[int]:
    """Return the heads whose rows are one-hot."""
    found = (heads.largest > ONE_HOT) & (heads.entropy < COLLAPSED)
    return [int(one) for one in found.nonzero().flatten()]


def silent_heads(seen: RecordedStream, heads: HeadNumbers) -> list[int]:
    """Return the heads without gradient, unless none of the layer has one, as behind a map of zeros."""
    sizes = seen.report.layers[heads.layer].head_gradients
    if len(sizes) != len(heads.entropy):
        return []
    return [number for number, size in enumerate(sizes) if size <= SILENT * max(sizes) and max(sizes) > 0]
