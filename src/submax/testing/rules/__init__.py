"""The rules that the conformance suites check."""
