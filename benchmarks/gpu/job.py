"""Train with checkpoints in the middle of epochs, or resume: python -m benchmarks.gpu.job FOLDER DEVICE ENGINE EPOCHS"""

import sys
from pathlib import Path

import torch

from benchmarks.networks import gpu_settings
from rankfall.train.device import prepare
from rankfall.train.loop import Course, TrainingHistory, fit, restore, state_of

SEEDS, SAMPLES, BATCH = [3, 1, 4, 15], 44, 10  # five steps an epoch


def main() -> None:
    folder, epochs = Path(sys.argv[1]), int(sys.argv[4])
    device = prepare(sys.argv[2], 1)
    net = gpu_settings()["sorting"]
    members, history = net.members(SEEDS, device, epochs=epochs), TrainingHistory(len(SEEDS), epochs, device)
    members.engine = net.engine(sys.argv[3], members)
    if (folder / "state.pt").exists():
        restore(members, history, torch.load(folder / "state.pt", map_location=device))

    def save(name: str) -> None:
        torch.save(state_of(members, history), folder / f"{name}.part")
        (folder / f"{name}.part").replace(folder / f"{name}.pt")

    def after_step() -> None:
        if members.step_count % 5 == 3:
            save("state")

    fit(members, net.data(SEEDS, device, SAMPLES), net.objective(), Course(epochs, BATCH), history, after_step)
    save("final")


if __name__ == "__main__":
    main()
