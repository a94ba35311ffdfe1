"""Batches of real pictures for vision models: those bundled with scikit-learn, or a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.random_streams import stream

if TYPE_CHECKING:
    from rankfall.models.texts import Texts


def pictures(texts: Texts, config: Any) -> Tensor:
    """Return square crops of the pictures in turn, (samples, channels, side, side) in [-1, 1]. The seed draws positions and sizes."""
    side = config.image_size if isinstance(config.image_size, int) else config.image_size[0]
    images = _bundled_pictures() if texts.source == "pictures" else _folder(Path(texts.source).expanduser())
    rng = stream(texts.seed, "pictures")
    rows = []
    for number in range(texts.samples):
        image = images[number % len(images)]
        edge = int(min(image.shape[:2]) * rng.uniform(0.5, 1.0))
        top = int(rng.integers(0, image.shape[0] - edge + 1))
        left = int(rng.integers(0, image.shape[1] - edge + 1))
        square = torch.from_numpy(image[top : top + edge, left : left + edge].copy()).permute(2, 0, 1)[None].float()
        rows.append(torch.nn.functional.interpolate(square, (side, side), mode="bilinear", antialias=True)[0])
    batch = torch.stack(rows) / 127.5 - 1
    return batch if config.num_channels == 3 else batch.mean(1, keepdim=True).expand(-1, config.num_channels, -1, -1)


def _bundled_pictures() -> list[np.ndarray]:
    try:
        from sklearn.datasets import load_sample_images
    except ImportError as error:
        raise RankfallError(
            "pictures need scikit-learn or a folder: pip install scikit-learn, or texts.source: FOLDER"
        ) from error
    return list(load_sample_images().images)


def _folder(path: Path) -> list[np.ndarray]:
    if not path.is_dir():
        raise RankfallError(f"text {str(path)!r} is not a folder of pictures; use 'pictures' for the bundled ones")
    from PIL import Image

    files = sorted(file for file in path.iterdir() if file.suffix.lower() in (".png", ".jpg", ".jpeg", ".bmp", ".webp"))
    if not files:
        raise RankfallError(f"text {str(path)!r} holds no png, jpg, bmp or webp")
    return [np.asarray(Image.open(file).convert("RGB")) for file in files]
