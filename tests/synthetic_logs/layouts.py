"""Loss terms of the usual detectors: where each begins and where it ends."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """The printed quantities of a model.

    `terms` maps a name to its level at the start and, from scratch, at the end of a
    training; `norm` is the same for the gradient norm. `total` is the key of the sum.
    `constants` are printed but never move (a loss weight of 0).
    """

    terms: dict[str, tuple[float, float]]
    norm: tuple[float, float]
    max_norm: float
    lr: float
    total: str = 'loss'
    extras: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()


def _detr() -> dict[str, tuple[float, float]]:
    terms = {}
    for layer in ['', *(f'd{i}.' for i in range(5))]:
        late = 1.0 if not layer else 1.3 - 0.05 * int(layer[1])
        terms[f'{layer}loss_cls'] = (1.75, 0.50 * late)
        terms[f'{layer}loss_bbox'] = (1.70, 0.30 * late)
        terms[f'{layer}loss_iou'] = (1.50, 0.80 * late)
    return terms


def _stream() -> dict[str, tuple[float, float]]:
    terms = {}
    for layer in ['', 'd0.', 'd1.']:
        for prefix in ['', 'dn_']:
            terms[f'frame_0_{layer}{prefix}loss_cls'] = (1.20, 0.35)
            terms[f'frame_0_{layer}{prefix}loss_bbox'] = (2.10, 0.70)
    return terms


LAYOUTS = {
    'detr': Layout(_detr(), (45.0, 92.0), 0.1, 1e-4),
    'retina': Layout(
        {'loss_cls': (1.15, 0.28), 'loss_bbox': (0.72, 0.31)}, (3.5, 5.0), 35.0, 0.01
    ),
    'two_stage': Layout(
        {
            'loss_rpn_cls': (0.65, 0.05),
            'loss_rpn_bbox': (0.06, 0.03),
            'loss_cls': (1.60, 0.27),
            # rises while the detector begins to find boxes
            'loss_bbox': (0.06, 0.22),
        },
        (8.0, 4.0),
        35.0,
        0.02,
        extras=('acc',),
    ),
    'stream': Layout(_stream(), (60.0, 40.0), 35.0, 4e-4),
    'unnamed': Layout(
        {'L_det': (3.10, 0.90), 'L_map': (2.20, 0.80), 'L_plan': (1.40, 0.50)},
        (25.0, 18.0),
        25.0,
        2e-4,
        constants=('L_depth',),
    ),
    'fcos': Layout(
        {
            'loss_cls': (1.10, 0.40),
            'loss_bbox': (0.95, 0.35),
            'loss_centerness': (0.69, 0.59),
        },
        (20.0, 7.0),
        35.0,
        0.01,
        constants=('loss_aux',),
    ),
}
