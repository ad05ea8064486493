"""Watch and explain; change nothing.

For whom: everybody who wants to know what the gradients do. Weights are bit-identical
with and without it.
What it adds: one line per optimizer step in steps.jsonl, norms per module for every
visualisation backend, an incident for every abnormal step, a report at the end.
"""

# Dotted names need no `custom_imports`, which another base may have.
custom_hooks = [
    # 50 steps: the interval of mmengine's own log line
    dict(type='mmgradguard.GradAnomalyHook', interval=50, warmup=16, on_fatal='warn'),
]
