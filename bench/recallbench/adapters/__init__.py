"""Adapters for systems under test in other languages, copied out by `recallbench systems adapter`."""
