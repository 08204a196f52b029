"""How figures, tables and texts of others are written, in a terminal, in Markdown, in HTML and in a notebook.

In: numbers, intervals, names, and text that a user or a system under test wrote. Out: text that is safe to show.
"""
