"""Events of a stream by columns."""
