"""Hooks that a config names."""
