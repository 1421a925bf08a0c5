"""Checksums of what a store holds, and the search for damage."""
