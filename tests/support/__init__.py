"""What several tests, the conformance run and the benchmarks share."""
