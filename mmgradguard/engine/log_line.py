"""What the guard adds where mmengine prints a log line."""

from __future__ import annotations

from typing import Any, Callable

from mmgradguard.incident.monitor import Monitor


def report_window(
    runner: Any, monitor: Monitor, log: Callable[[str, str], None], fatal: str
) -> None:
    """Hand numbers to the message hub and the vis backends, and say what happened.

    Args:
        runner: Of mmengine, before `LoggerHook` prints.
        monitor: Whose window ends here.
        log: Called with level and sentence.
        fatal: What is wrong with the weights, if they are lost.
    """
    for name, value in monitor.window.scalars().items():
        runner.message_hub.update_scalar(f'train/grad_guard/{name}', value)
    norms = monitor.module_norms.latest()
    if norms:
        runner.visualizer.add_scalars(
            {f'grad_guard_norm/{name}': value for name, value in norms.items()},
            step=runner.iter + 1,
        )
    sentence = monitor.window.sentence(monitor.weights_are_finite)
    monitor.window.clear()
    # mmengine drops a warning that it has printed before, word for word: with the
    # place in front each is another one
    place = monitor.place
    if sentence:
        log('WARNING', f'{place}  {sentence}')
    if not monitor.weights_are_finite:
        log('ERROR', f'{place}  !!! EVERY STEP FROM HERE ON IS WASTED: {fatal} !!!')
