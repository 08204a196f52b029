"""The documented systems, played by the reference stack."""
