"""What is computed once for all samples equals what is computed for each of them."""

import pytest
import torch

pytest.importorskip("transformers")


from rankfall.streams import repeats
from rankfall.streams.repeats import once


def drawn(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(
    ("equation", "operands", "computed"),
    [
        ("ibh,hnd->ibnd", (drawn(4, 1, 3, seed=0).expand(4, 5, 3), drawn(3, 2, 6, seed=1)), (4, 1, 2, 6)),
        # Of each sample its own, summed over, or with a partner that has the axis too: nothing may be left out.
        ("ibh,hnd->ibnd", (drawn(4, 5, 3, seed=0), drawn(3, 2, 6, seed=1)), (4, 5, 2, 6)),
        ("ibh,hnd->ind", (drawn(4, 1, 3, seed=0).expand(4, 5, 3), drawn(3, 2, 6, seed=1)), (4, 2, 6)),
        ("ibh,jbh->bij", (drawn(4, 1, 3, seed=0).expand(4, 5, 3), drawn(2, 5, 3, seed=1)), (5, 4, 2)),
    ],
)
def test_a_repeated_axis_is_computed_once_and_repeated(
    equation: str, operands: tuple[torch.Tensor, ...], computed: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    inner = repeats.in_float64

    def seen(*given: object) -> torch.Tensor:
        found: torch.Tensor = inner(*given)
        sizes.append(tuple(found.shape))
        return found

    monkeypatch.setattr(repeats, "in_float64", seen)
    found = once(torch.einsum, (equation, *operands), {})
    whole = torch.einsum(equation, *[operand.contiguous() for operand in operands])
    torch.testing.assert_close(found, whole, rtol=1e-14, atol=1e-14)
    assert sizes == [computed]
    if 1 in computed:
        found += 1.0  # what was repeated is no view of one part
