"""The parameters of an optimizer, in order, with their names in the model."""

from __future__ import annotations

from torch import Tensor, nn
from torch.optim import Optimizer

from mmgradguard.compat import unwrap_model


class ParamTable:
    """Parameters in the optimizer's order; follows groups that are added later.

    Names are those of the model without the ``module.`` of a wrapper, or
    ``param_groups[0][3]`` where no model is known. A tied parameter has one name, the
    first.
    """

    def __init__(self, optimizer: Optimizer, model: nn.Module | None = None) -> None:
        self.optimizer = optimizer
        self.model = model
        self.params: list[Tensor] = []
        self.names: list[str] = []
        self.refresh()

    def refresh(self) -> bool:
        """Read the groups again if they changed; True if they did."""
        params = [p for group in self.optimizer.param_groups for p in group['params']]
        if len(params) == len(self.params) and all(
            a is b for a, b in zip(params, self.params)
        ):
            return False
        known = {}
        if self.model is not None:
            model = unwrap_model(self.model)
            known = {id(p): name for name, p in model.named_parameters()}
        self.params = params
        self.names = [
            known.get(id(p), f'param_groups[{g}][{i}]')
            for g, group in enumerate(self.optimizer.param_groups)
            for i, p in enumerate(group['params'])
        ]
        return True
