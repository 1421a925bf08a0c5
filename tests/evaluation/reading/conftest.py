from stored import clock, closed_stores, opened, store  # noqa: F401 - pytest finds fixtures by their names here
