"""A memory back end that kills the process in which it searches."""

import os

from tests.rag_memory.tiny_backend import TinyBackend


class DeadlyBackend(TinyBackend):
    """Finds nothing and nobody."""

    def search(self, scope, query, limit=10, audience=None):
        """Die."""
        os._exit(1)
