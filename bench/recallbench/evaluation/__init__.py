"""One way to ask systems, to match what came back to the labels, to measure it, and to doubt it.

In: a labelled set, systems under test and measures. Out: an `Evaluation`: one number a system, measure and question,
with the findings of the trust checks.
"""
