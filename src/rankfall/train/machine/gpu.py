"""The engine of `Members` on a GPU. A step does not wait for the GPU: the next evaluation reports an index outside of its table."""

from rankfall.train.machine.engine import Machined, as_errors_of_users
from rankfall.train.members import Members
from rankfall.train.objectives._base import Graded, Objective, Samples
from thousandfold.gpu.engine import GpuEngine


class MachinedOnGpu(Machined):
    name, device_type = "machine_gpu", "cuda"
    kind = GpuEngine
    engine: GpuEngine

    def grade(self, members: Members, objective: Objective, batch: Samples) -> Graded:
        """Evaluate by PyTorch, since an evaluation is too small to be worth a kernel."""
        with as_errors_of_users():
            self.engine.check_strayed()  # the caller reads the result and waits for the GPU anyway
        return objective(members.module, batch)
