"""The check of number formats, and of NaN and infinity."""

from typing import Any

import torch
from torch import Tensor

from rankfall.check.named import Limit, Result, failed, named, passed, skipped, warned
from rankfall.check.recording import RecordedStream
from rankfall.errors import RankfallError
from rankfall.streams.arguments import as_format, call_model, copy_of
from rankfall.streams.examine import FAILURES, Examined, find_maker, plain
from rankfall.streams.record import tensors_in

FLOAT32 = Limit(
    1e-2,
    "a relative difference of the output in float32 above this fails",
    "our choice: 100,000 times the rounding of float32 (6e-8), as by cancellation of large numbers",
)
BFLOAT16 = Limit(
    0.5,
    "a relative difference in bfloat16 above this warns",
    "our choice: rounding is 2^-9 = 0.002 an operation; at 0.5 half of the output is rounding",
)


@named("numbers-hold", FLOAT32, BFLOAT16, states=False)
def numbers_hold(recording: RecordedStream) -> Result:
    """Are all numbers finite, and is the output about the same in float32, bfloat16 and float64?

    The difference is the norm of the output's difference from that in the widest format that the code supports, over the norm of the
    output. If a number is NaN or infinity, the result names the first module that makes it: the inputs of the module are finite and its
    output is not, or its own code makes it between its parts.
    """
    if any(bool(tensor.isnan().any()) for tensor in recording.examined.arguments.tensors()):
        return failed("the inputs have NaN")
    states = recording.states
    broken = next((layer for layer, state in enumerate(states) if not bool(state.isfinite().all())), None)
    maker = first_not_finite(recording.examined)
    if broken is not None or maker:
        where = "the output" if broken is None else f"the state after layer {broken}" if broken else "the first state"
        sentence = f"{where} has NaN or infinity; the first module that makes such numbers is {maker or 'not known'}"
        return failed(sentence, maker)
    wide = output_tensors(recording.examined, recording.examined.dtype)
    differences = []
    for dtype, limit in ((torch.float32, FLOAT32), (torch.bfloat16, BFLOAT16)):
        name = str(dtype).removeprefix("torch.")
        try:
            narrow = output_tensors(recording.examined, dtype)
        except (*FAILURES, RankfallError):
            differences.append(f"its code does not run in {name}")
            continue
        error = relative_difference(wide, narrow)
        if error is None:
            return failed(f"the output has NaN or infinity in {name}, and not in {recording.examined.dtype}")
        differences.append(f"{error:.1g} in {name}")
        if error > limit:
            verdict = failed if dtype == torch.float32 else warned
            return verdict(f"the output in {name} differs by {error:.2g} of its size from that in float64")
    if not wide:
        return skipped("the output has no numbers")
    return passed(f"finite; the output differs by {', '.join(differences)}")


def output_tensors(examined: Examined, dtype: torch.dtype) -> list[Tensor]:
    """Return the floating-point tensors of the output in a number format."""
    model, arguments = copy_of(examined.model, dtype), as_format(examined.arguments, dtype)
    with torch.no_grad():
        tensors = tensors_in(plain(model, arguments) if dtype == torch.float64 else call_model(model, arguments))
    return [tensor.double() for _, tensor in tensors if tensor.is_floating_point()]


def relative_difference(wide: list[Tensor], narrow: list[Tensor]) -> float | None:
    """Return the relative difference; None if the narrow output is not finite where the wide one is."""
    pairs = [(x, y) for x, y in zip(wide, narrow) if x.shape == y.shape]
    if any(bool((x.isfinite() & ~y.isfinite()).any()) for x, y in pairs):
        return None
    clean = [(x.nan_to_num(0, 0, 0), y.nan_to_num(0, 0, 0)) for x, y in pairs]
    size = sum(float(x.norm()) ** 2 for x, _ in clean) ** 0.5
    return sum(float((x - y).norm()) ** 2 for x, y in clean) ** 0.5 / (size or 1.0)


def first_not_finite(examined: Examined) -> str:
    """Return the first module that makes NaN or +inf from finite inputs, or ''. Masks hold -inf, which does not count."""

    def is_broken(_: int, __: int, value: Any) -> bool:
        numbers = [tensor for _, tensor in tensors_in(value) if tensor.is_floating_point()]
        return any(bool((tensor.isnan() | tensor.isposinf()).any()) for tensor in numbers)

    return find_maker(examined.model, examined.arguments, is_broken)
