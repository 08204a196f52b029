"""Baselines: what a system returned, committed beside the code that it is a baseline of."""
