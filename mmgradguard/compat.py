"""Everything that differs between versions of torch and mmengine."""

from __future__ import annotations

from typing import Any, Sequence

import torch
from torch import Tensor, nn

TORCH_VERSION = tuple(
    int(part) for part in torch.__version__.split('+')[0].split('.')[:2]
)


def foreach_norm(tensors: Sequence[Tensor], norm_type: float) -> list[Tensor]:
    """Return one norm per dense tensor, half precision accumulated in fp32."""
    if tensors[0].dtype not in (torch.float16, torch.bfloat16):
        return list(torch._foreach_norm(tensors, norm_type))
    if TORCH_VERSION >= (2, 4):
        return list(torch._foreach_norm(tensors, norm_type, dtype=torch.float32))
    return list(torch._foreach_norm([t.float() for t in tensors], norm_type))


def unwrap_model(model: nn.Module) -> nn.Module:
    """Return the user's model without DDP, FSDP, DataParallel or ``torch.compile``."""
    while True:
        if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            model = model.module
        elif hasattr(model, '_orig_mod'):
            model = model._orig_mod
        elif hasattr(model, '_fsdp_wrapped_module'):
            model = model.module
        else:
            return model


def foreach_copy_(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    """Copy each source into its target, in few kernels where torch can."""
    if TORCH_VERSION >= (2, 1):
        torch._foreach_copy_(targets, sources)
        return
    for target, source in zip(targets, sources):
        target.copy_(source)


def mark_as_stepped(optimizer: Any) -> None:
    """Tell torch's schedulers that a step was due: they warn if there was none."""
    optimizer._opt_called = True  # what they look at from torch 2.4 on
    if hasattr(optimizer, '_step_count'):  # and before
        optimizer._step_count = max(optimizer._step_count, 1)


def grad_scaler(device: str, **kwargs: Any) -> Any:
    """Build a GradScaler for ``'cuda'`` or ``'cpu'``.

    Raises:
        RuntimeError: If this torch has none for that device (CPU needs 2.3).
    """
    if TORCH_VERSION >= (2, 3):
        return torch.amp.GradScaler(device, **kwargs)
    if device != 'cuda':
        raise RuntimeError(
            f'fp16 on {device} needs torch >= 2.3 (this is {torch.__version__}): '
            "use dtype='bfloat16' or a CUDA device"
        )
    return torch.cuda.amp.GradScaler(**kwargs)


def allow_mmengine_checkpoints() -> None:
    """Let ``torch.load(weights_only=True)`` read what mmengine itself puts in
    checkpoints.

    From torch 2.6 on that check is the default, and mmengine 0.10.7 resumes without
    saying otherwise, so that its own message hub is refused. The check stays on; it
    only learns the classes of numbers and histories. A pickled history refers to its
    own methods through ``getattr``: under that name stands a function that serves
    nothing else.
    """
    if TORCH_VERSION < (2, 6):
        return
    from mmengine.logging import HistoryBuffer

    def history_method(owner: Any, name: str) -> Any:
        if owner is HistoryBuffer and name in ('min', 'max', 'mean', 'current'):
            return getattr(owner, name)
        raise AttributeError(f'not allowed in a checkpoint: {owner!r}.{name}')

    torch.serialization.add_safe_globals(
        [
            HistoryBuffer,
            *numpy_safe_globals(),
            (history_method, 'builtins.getattr'),
        ]
    )


def numpy_safe_globals() -> list[Any]:
    """Return what arrays and numbers of NumPy need to be unpickled.

    Either generation of NumPy names it in its own way in the pickles that it writes.
    """
    import numpy

    multiarray = (getattr(numpy, '_core', None) or numpy.core).multiarray
    dtypes = {type(numpy.dtype(kind)) for kind in ('f4', 'f8', 'i4', 'i8', 'u4', '?')}
    homes = ('numpy.core.multiarray', 'numpy._core.multiarray')
    return [
        numpy.ndarray,
        numpy.dtype,
        *dtypes,
        *((multiarray._reconstruct, f'{home}._reconstruct') for home in homes),
        *((multiarray.scalar, f'{home}.scalar') for home in homes),
    ]
