"""What is computed once and kept on disk, in the user's cache folder, under a hash of all that made it.

In: a channel, its settings and a corpus. Out: the channel's candidates, read back or computed.
"""
