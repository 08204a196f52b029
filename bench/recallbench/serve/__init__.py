"""An HTTP server that answers the pre-retrieval contract over a labelled set or a folder of Markdown notes.

In: `POST /search` requests. Out: hits of one recipe, asked in batches.
"""
