"""The offline model: rule-based, deterministic, without weights and without a network."""
