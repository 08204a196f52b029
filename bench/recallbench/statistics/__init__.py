"""The statistics of recall: intervals, paired comparisons, the interval of a verdict, and sample sizes.

In: arrays with one number a question, and the cluster of each question. Out: plain values.
Nothing here knows a data set.
"""
