"""TREC files: runs are read and written here, and so is trec_eval's order among equal scores.

In: a file, or document ids with scores. Out: one ranked list a question.
"""
