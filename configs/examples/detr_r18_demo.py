# A small DETR on the demo set, under guard: `make demo`, or by hand
#
#   python tools/make_demo_dataset.py data/demo
#   python .../mmdet/.mim/tools/train.py configs/examples/detr_r18_demo.py
#
# Another folder: data_root must be overridden where it is used, because a config
# resolves its variables before it sees the command line:
#   --cfg-options train_dataloader.dataset.data_root=DIR \
#       val_dataloader.dataset.data_root=DIR \
#       val_evaluator.ann_file=DIR/annotations/val.json
_base_ = 'mmdet::detr/detr_r18_8xb2-500e_coco.py'

# The guard. Only these two statements are about it.
custom_imports = dict(imports=['mmgradguard'], allow_failed_imports=False)
custom_hooks = [
    dict(type='GradAnomalyHook'),
    dict(type='AdaptiveClipHook', on_exception='skip'),
]

data_root = 'data/demo'
classes = (
    *('zero', 'one', 'two', 'three', 'four'),
    *('five', 'six', 'seven', 'eight', 'nine'),
)
num_classes = len(classes)

# Trained from scratch, so nothing is downloaded; then BatchNorm has to learn too.
# 2+2 layers and 20 queries: an iteration takes about 0.2 s on two CPU cores.
ffn_cfg = dict(feedforward_channels=512)
model = dict(
    num_queries=20,
    backbone=dict(
        frozen_stages=-1,
        norm_cfg=dict(type='BN', requires_grad=True),
        norm_eval=False,
        init_cfg=None,
    ),
    encoder=dict(num_layers=2, layer_cfg=dict(ffn_cfg=ffn_cfg)),
    decoder=dict(num_layers=2, layer_cfg=dict(ffn_cfg=ffn_cfg)),
    bbox_head=dict(num_classes=num_classes),
    test_cfg=dict(max_per_img=20),
)

# No Resize: the images are 128x128, and a Resize would clip the planted box to the
# image. No RandomFlip: a mirrored digit is another sign.
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True),
    dict(type='PackDetInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(128, 128), keep_ratio=True),  # DETR asks for its factor
    dict(type='LoadAnnotations', with_bbox=True),
    dict(
        type='PackDetInputs',
        meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor'),
    ),
]
train_dataloader = dict(
    batch_size=4,
    num_workers=0,
    persistent_workers=False,
    dataset=dict(
        data_root=data_root,
        ann_file='annotations/train.json',
        data_prefix=dict(img='train/'),
        metainfo=dict(classes=classes),
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    batch_size=4,
    num_workers=0,
    persistent_workers=False,
    dataset=dict(
        data_root=data_root,
        ann_file='annotations/val.json',
        data_prefix=dict(img='val/'),
        metainfo=dict(classes=classes),
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(ann_file=data_root + '/annotations/val.json')
test_evaluator = val_evaluator

max_epochs = 4
train_cfg = dict(max_epochs=max_epochs, val_interval=max_epochs)
optim_wrapper = dict(
    optimizer=dict(lr=3e-4),
    paramwise_cfg=dict(custom_keys=dict(backbone=dict(lr_mult=1.0))),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.1, by_epoch=False, begin=0, end=20),
    dict(
        type='CosineAnnealingLR',
        by_epoch=False,
        begin=20,
        end=60 * max_epochs,
        eta_min_ratio=0.05,
    ),
]
default_hooks = dict(
    logger=dict(interval=10),
    checkpoint=dict(interval=max_epochs, max_keep_ckpts=1, save_optimizer=False),
)
# Each logged value is then the mean of its own ten iterations.
log_processor = dict(window_size=10)
randomness = dict(seed=0)
