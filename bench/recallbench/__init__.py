"""recallbench: did the recall of an agent memory get better or worse, where, and is it real?"""

__version__ = "0.1.0"
