"""Stateless functions on tensors: norms, clipping, statistics, saved state."""
