"""The five documented systems: session, notes, memory, preretrieval and lane, each in legacy and fixed behaviour.

In: events, calls and stored rows, as the documents describe them. Out: what each system would inject, store or send.
"""
