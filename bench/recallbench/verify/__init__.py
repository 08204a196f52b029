"""Known-answer tests of an installation: fusion, injection, measures and BM25 against values from other sources.

In: JSON lines with inputs and the values that must come out. Out: the cases that differ.
"""
