"""The session side: event log, the query of a step, its vector in time, and injection driven from them.

Source of the rules: `000_da5ad1ff1d0f0f3a.txt` (points 1 and the proposed fix) and the design of the scenarios.
"""
