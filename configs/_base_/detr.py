"""Act, for DETR and its family, whose every step is clipped.

For whom: DETR, Deformable, Conditional, DAB, DINO, DDQ, Mask2Former and relatives.
Their official configs in mmdet 3.3.0 set max_norm to 0.1 (Mask2Former 0.01), while a
healthy run's grad_norm is 50 to 300: each step is clipped by a factor of hundreds, and
below such a ceiling no adaptive threshold can act. None is set here.
What it changes: a step with NaN or Inf in a gradient is skipped, truly; a run whose
weights are lost stops. Optimizer, learning rate, precision and clip_grad stay yours.
"""

# Dotted names need no `custom_imports`, which another base may have.
custom_hooks = [
    dict(type='mmgradguard.GradAnomalyHook', interval=50, warmup=16),
    dict(
        type='mmgradguard.AdaptiveClipHook',
        clip_policy=dict(type='FixedClip'),  # clip_grad.max_norm of your config
        skip_nonfinite=True,
        skip_spikes=False,  # a rare hard image is worth its clipped step
        on_fatal='stop',
        on_exception='raise',
    ),
]
