"""Thousands of fusion recipes at once, and the ablation of switches: which setting is best, and is that real?

In: a labelled set and a grid of recipes. Out: one number a recipe and measure, chosen on dev questions and reported on
test questions.
"""
