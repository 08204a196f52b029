"""Pre-retrieval: knowledge-base hits put into the context before the first request of a turn.

Source of the rules: `004_d4670f52a8f5ca01.txt` and the public plugin that it describes.
"""
