"""From rows to events, a verdict and advice."""
