"""Adam (Kingma & Ba 2015). Weight decay, if any, enters through the gradient, as in torch.optim.Adam.

Every weight moves at every step, including the rows of an embedding whose words a batch lacks: their running means keep moving them. An
update of a row only when it is read again would have to replay the missed steps one by one, since the corrections for t, the schedule and
eps have no closed form. That would save reads and writes of memory, but no arithmetic.
"""

import thousandfold.optimizers


class Adam(thousandfold.optimizers.Adam):
    def __init__(self, *, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8) -> None:
        super().__init__(betas=(beta1, beta2), eps=eps)
