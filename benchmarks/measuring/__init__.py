"""What benchmarks share: clocks, claims, processes, and other libraries."""
