"""The learning rate times `factor` at each milestone."""


def multistep(epoch: int, epochs: int, *, milestones: list[int], factor: float = 0.1) -> float:
    return factor ** sum(epoch >= milestone for milestone in milestones)
