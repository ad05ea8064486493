"""From an anomaly back to what made it: the batch, the module, the sample."""
