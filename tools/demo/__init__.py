"""What `tools/run_demo.py` is made of: plan, launch, read, judge, show."""
