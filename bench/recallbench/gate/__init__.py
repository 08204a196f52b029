"""The merge gate: a policy, a baseline, a system under test; a verdict that can be defended."""
