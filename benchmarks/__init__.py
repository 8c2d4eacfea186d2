"""Workloads with figures: `python -m benchmarks.NAME [--quick]` prints JSON lines, and ratios last."""
