"""The check of attention weights, by head."""

from rankfall.check.named import Limit, Result, failed, named, passed, skipped, warned
from rankfall.check.reads import HeadNumbers
from rankfall.check.recording import RecordedStream

ONE_HOT = Limit(
    0.95,
    "a mean largest weight above this is one-hot; all heads of a layer fail, a quarter of all heads warns",
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
def attention_alive(recording: RecordedStream) -> Result:
    """Does attention read more than one token, in every head?

    By head, over rows that see at least two tokens: entropy over the log of the number of visible tokens, largest weight, share of the
    first token and mean distance. Weights come from an explicit softmax or from PyTorch's fused functions. A softmax fails if its axis is
    not the one over which the product with the values sums, since rows of weights then do not sum to one. Attention fails, too, if no
    token reads another. A head without gradient at its queries or keys is dead: its queries, its keys, its values or its output are zero.
    The scale of scores is the product of all numbers that multiply queries, keys and scores. It is not judged behind a norm of queries or
    a learned scale.
    """
    mixing = {branch.name for branch in recording.flow.branches if branch.mixes}
    if inside := [pair for pair in recording.within if not mixing or pair[0].name in mixing]:
        branch, size = inside[0]
        return failed(
            f"no token reads another in the attention of layer {branch.layer}, which weighs {size} x {size} parts of one token: are heads "
            "and tokens not transposed, or is batch_first=True missing?", recording.path_of(branch),
        )  # fmt: skip
    if recording.sideways:
        where, axis = recording.sideways[0]
        summed = "and their product with the values sums over another"
        return failed(f"the softmax in {where} is over axis {axis} of the weights, {summed}", where)
    if not recording.heads:
        return skipped(recording.report.reasons.get("attention", "no weights are known"))
    if recording.unlike_groups:
        where, sentence = recording.unlike_groups[0]
        return failed(f"{sentence}: repeat both in the same order, as by repeat_interleave", where)
    total = sum(len(heads.entropy) for heads in recording.heads)
    dead = [(heads, hot) for heads in recording.heads if (hot := one_hot(heads))]
    whole = [heads for heads, hot in dead if len(hot) == len(heads.entropy)]
    if whole:
        heads = whole[0]
        sizes = (
            f"largest weight {float(heads.largest.mean()):.3f}, entropy {float(heads.entropy.mean()):.2g} of uniform"
        )
        return failed(f"all {len(heads.entropy)} heads of layer {heads.layer} read one token: {sizes}", heads.where)
    silent = [(heads, mute) for heads in recording.heads if (mute := silent_heads(recording, heads))]
    if silent:
        heads, mute = silent[0]
        count, first = sum(len(mute) for _, mute in silent), f"layer {heads.layer}, head {', '.join(map(str, mute))}"
        return failed(f"{count} of {total} heads are dead: {first}: no gradient at its queries or keys", heads.where)
    few = sum(len(hot) for _, hot in dead)
    if 4 * few >= total:
        heads, hot = dead[0]
        numbers = ", ".join(map(str, hot))
        return warned(f"{few} of {total} heads read one token: layer {heads.layer}, head {numbers}", heads.where)
    loud = max(recording.heads, key=lambda heads: heads.logit if heads.logit == heads.logit else 0.0)
    if loud.logit > LOGIT:
        return warned(f"the largest score is {loud.logit:.3g}, in layer {loud.layer}", loud.where)
    if selfless := [heads for heads in recording.heads if heads.selfless]:
        cause = "does the mask lack its diagonal, as tril(-1) does?"
        return warned(f"no token of layer {selfless[0].layer} reads itself: {cause}", selfless[0].where)
    if odd := [(heads, sentence) for heads in recording.heads if (sentence := describe_scale(recording, heads))]:
        return warned(odd[0][1], odd[0][0].where)
    over_tokens = [heads for heads in recording.heads if not bool(heads.first.isnan().any())]
    sinks = sum(int((heads.first > SINK).sum()) for heads in over_tokens) if recording.report.tokens > 3 else 0
    if 2 * sinks > sum(len(heads.first) for heads in over_tokens):
        most = max(over_tokens, key=lambda heads: float(heads.first.max()))
        share = float(most.first.max())
        return warned(f"{sinks} of {total} heads rest on the first token, up to {share:.0%}", most.where)
    least = min(float(heads.entropy.min()) for heads in recording.heads)
    distances = [float(heads.distance.mean()) for heads in recording.heads if not bool(heads.distance.isnan().any())]
    distance = f", mean distance {sum(distances) / len(distances):.1f} tokens" if distances else ""
    by_channel = all(len(heads.entropy) == recording.flow.width for heads in recording.heads)
    counted = "weights for each channel" if by_channel else f"{total} heads"
    counted += f", {few} of which read{'s' * (few == 1)} one token" if few else ""
    return passed(f"{counted}; entropy at least {least:.2f} of uniform{distance}")


def describe_scale(recording: RecordedStream, heads: HeadNumbers) -> str:
    """Return a sentence on scores with a scale other than 1/sqrt(d), or '' if it is usual or if norms or weights scale them."""
    scale, size = heads.scale.factor, heads.scale.size
    if not size or not scale > 0 or abs(scale * size**0.5 - 1) <= SCALE or (scale == 1 and not heads.scale.even):
        return ""
    tokens, width = recording.report.tokens, recording.flow.width
    sources = {
        len(heads.entropy) ** -0.5: f"by the root of {len(heads.entropy)} heads", tokens**-0.5: f"by the root of {tokens} tokens",
        width**-0.5: f"by the root of the width {width}", size**0.5: "multiplied by the root, not divided",
        1 / size: "1/d: right under muP alone, or scaled twice?", 1.0: "that is, not scaled",
    }  # fmt: skip
    source = next((text for value, text in sources.items() if abs(scale / value - 1) < 1e-3), "is that meant?")
    return f"scores of layer {heads.layer} are q k times {scale:.3g} ({source}); usual is 1/sqrt({size}) = {size**-0.5:.3g}"


def one_hot(heads: HeadNumbers) -> list[int]:
    """Return the heads whose rows are one-hot."""
    hot = (heads.largest > ONE_HOT) & (heads.entropy < COLLAPSED)
    return [int(head) for head in hot.nonzero().flatten()]


def silent_heads(recording: RecordedStream, heads: HeadNumbers) -> list[int]:
    """Return the heads without gradient. If no head of the layer has one, as behind a map of zeros, return none."""
    sizes = recording.report.layers[heads.layer].head_gradients
    if len(sizes) != len(heads.entropy):
        return []
    return [number for number, size in enumerate(sizes) if size <= SILENT * max(sizes) and max(sizes) > 0]
