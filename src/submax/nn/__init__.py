"""Networks and their training: the only layer that imports JAX.

Nothing here is imported before something is trained, so that everything else works without it.
"""
