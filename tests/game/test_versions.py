"""The shape in which an assistant is stored."""

import pickle

from evennia_ai.history.stored import Sealed
from evennia_ai.turns.assistant import VERSION, VERSION_KEY
from tests.base import AssistantTest


class TestVersion(AssistantTest):
    """What later versions of the package find."""

    def test_the_version_is_stored(self):
        """Each assistant says in which shape it is stored."""
        self.assertEqual(self.script.attributes.get(VERSION_KEY), VERSION)

    def test_sealed_texts_keep_their_name(self):
        """The database holds the names of module and class, as version 1 wrote them."""
        stored = b"cevennia_ai.history.stored\nSealed\n(VHeron\nVo1\ntR."
        self.assertEqual(pickle.loads(stored), Sealed("Heron", "o1"))
        self.assertIn(b"evennia_ai.history.stored", pickle.dumps(Sealed("Heron")))
