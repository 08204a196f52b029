"""A run on disk: it is written whole or not at all, resumed, read back, merged and compared.

In: an `Evaluation`. Out: a folder of Parquet, TREC, JSON and Markdown files, and the same values read back from it.
"""
