# The same training without the guard: the demo compares the two
_base_ = './detr_r18_demo.py'

custom_imports = dict(_delete_=True, imports=[])
custom_hooks = []
