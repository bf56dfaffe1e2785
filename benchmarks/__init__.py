"""Measurements, one command each; every one prints JSON."""
