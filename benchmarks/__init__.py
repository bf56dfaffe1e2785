"""Benchmarks. Each is one command that prints JSON."""
