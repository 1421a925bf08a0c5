"""Networks and their training: the only package that imports JAX.

It is imported when a network is first trained, so everything else works without JAX.
"""
