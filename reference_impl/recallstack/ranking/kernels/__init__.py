"""Ranks by counting: how thousands of fusion recipes are scored without sorting a list.

In: the candidates of the channels and the labelled memories. Out: the rank of each labelled memory under each recipe.
"""
