"""The only readers and writers of Attributes. Everything above and below gets plain values."""
