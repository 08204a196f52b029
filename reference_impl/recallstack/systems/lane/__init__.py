"""Context lane: side requests of a client must not corrupt its main session.

Source of the rules: `001_5ea1f57915311a6a.txt`. The way in is `pipeline.Pipeline`: `handle` a request,
`settle` its usage, `compress` a range of refs, look at a `session`. Wire shapes are in `wires`.
"""
