"""The readers of labelled sets: one file a format; `recallbench.datasets.registry` holds the table of their names.

In: the files of a format as they lie on disk. Out: a stream of memories and questions.
"""
