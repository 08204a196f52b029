"""The one ranking core: channels make candidates, stages turn candidates into candidates, a recipe names both.

In: a corpus and a batch of questions. Out: ids and scores, one row a question, best first.
"""
