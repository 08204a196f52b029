"""How labels come to be: pools to judge, judgements, questions from logs, masking, grown corpora and power.

In: runs of several systems, judgements of people, logs. Out: labelled sets, and what such a set can decide.
"""
