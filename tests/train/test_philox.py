"""Random words made on a device: NumPy's bits, by operations on tensors and by the text of the GPU's kernel."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rankfall.random_streams import stream, words
from rankfall.train.dropout import DeviceDropout, SeededDropout
from rankfall.train.philox import KERNEL, Four, integers, keys_of, random_raw, uniform, verify

CPU = torch.device("cpu")
WORD = st.integers(0, 2**64 - 1) | st.integers(2**64 - 40, 2**64 - 1) | st.integers(0, 3)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(WORD, WORD), min_size=1, max_size=4), st.tuples(WORD, WORD, WORD, WORD), st.integers(1, 99))
def test_words_are_numpys(keys: list[tuple[int, int]], counter: tuple[int, int, int, int], count: int) -> None:
    """Also where the counter carries from word to word."""
    result = random_raw(keys_of(keys, CPU), counter, count).numpy().view(np.uint64)
    for row, key in zip(result, keys):
        built = np.random.Philox(key=np.array(key, np.uint64), counter=np.array(counter, np.uint64))
        assert row.tolist() == built.random_raw(count).tolist()


@pytest.mark.parametrize("shape", [(7,), (2, 3, 4, 4)])
@pytest.mark.parametrize("rate", [0.1, 1e-6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_masks_of_a_device_are_those_of_the_processor(shape: tuple[int, ...], rate: float, dtype: torch.dtype) -> None:
    seeds = [3, 1, 2**31]
    x = torch.randn(3, *shape, dtype=dtype, generator=torch.Generator().manual_seed(0))
    ours, numpys = DeviceDropout(seeds, rate, CPU), SeededDropout(seeds, rate)
    for step in (0, 1, 70_000):
        assert torch.equal(ours.at(step)(x, "block3.weights"), numpys.at(step)(x, "block3.weights"))


def test_uniform_numbers_are_those_of_numpys_generator() -> None:
    result = uniform(random_raw(keys_of([words(5, "x")], CPU), (0, 0, 0, 0), 1000))
    assert result[0].tolist() == stream(5, "x").random(1000).tolist()


@pytest.mark.parametrize("below", [7, 30_000, 3 * 2**29])
def test_integers_are_those_of_numpys_generator(below: int) -> None:
    """Of 3 * 2**29 a quarter of all draws are passed over, and what follows moves up."""
    result = integers(random_raw(keys_of([words(5, "x"), words(6, "x")], CPU), (0, 0, 0, 0), 900), below, 1000)
    for row, seed in zip(result, (5, 6)):
        assert row.tolist() == stream(seed, "x").integers(below, size=1000).tolist()


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_the_kernel_makes_the_same_words(tmp_path: Path) -> None:
    """The text that a GPU would run, compiled for the processor, where only the upper half of a product has another name."""
    call = ", ".join(["x[0]", "x[1]", "x[2]", "x[3]", "x[4]", "x[5]", "w[0]", "w[1]", "w[2]", "w[3]"])
    (tmp_path / "philox.cpp").write_text(
        "#define __umul64hi(a, b) ((unsigned long long)(((unsigned __int128)(a) * (b)) >> 64))\n"
        f'{KERNEL}\nextern "C" void words(const long long* x, long long* w) {{ philox<long long>({call}); }}\n'
    )
    subprocess.run(["g++", "-shared", "-fPIC", "-o", "philox.so", "philox.cpp"], cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "philox.so"))

    def compiled(*given: torch.Tensor) -> Four:
        each = torch.stack(torch.broadcast_tensors(*given), -1).contiguous()  # (..., 6)
        built = each.new_empty(*each.shape[:-1], 4)
        for x, w in zip(each.view(-1, 6), built.view(-1, 4)):
            library.words(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(w.data_ptr()))
        return built[..., 0], built[..., 1], built[..., 2], built[..., 3]

    assert verify(compiled, CPU) is compiled
