"""The pages of cards and lore: upload, look, test, change."""

from django.core.files.uploadedfile import SimpleUploadedFile

from evennia_ai.game.lore import lore
from tests.cards import card, png, text_chunk
from tests.cards.test_chats import nasty
from tests.commands.test_commands_card import CardCase
from tests.web.test_pages import HOSTILE, BrowsingTest, Harmless


class TestLorePages(BrowsingTest, CardCase):
    def setUp(self):
        super().setUp()
        self.be("Builder")

    def send(self, name, data):
        """Upload a file; what the page says."""
        file = SimpleUploadedFile(name, data)
        sent = {"act": "upload", "file": file}
        return self.client.post("/ai/cards/", sent, follow=True).content.decode()

    def test_upload_and_look(self):
        """A card is kept under a name that leads nowhere else, and shown; nothing is made of it."""
        data = png(text_chunk(card(name="Nia", first_mes="<b>Hi</b>")))
        self.assertIn("aicard/import nia.png", self.send("nia.png", data))
        self.assertEqual((self.files / "nia.png").read_bytes(), data)
        page = self.client.get("/ai/cards/?file=nia.png").content.decode()
        self.assertIn("A card of Nia, from a PNG file.", page)
        self.assertIn("already", self.send("nia.png", nasty()))
        self.assertEqual((self.files / "nia.png").read_bytes(), data)
        self.send("../../.evil.jsonl", nasty())
        self.send("noname.json", b'{"name": "", "description": "x"}')
        for bad, said in ((b"x", "this is no JSON"), (data[:60], "in the middle")):
            self.assertIn(said, self.send("bad.png", bad))
        there = {"nia.png", "evil.jsonl", "noname.json"}
        self.assertEqual({f.name for f in self.files.iterdir()}, there)
        (self.files / "evil.png").write_bytes(b"x")
        for file, said in (("evil.png", "this is no JSON"), ("../x", "is no name of a file")):
            self.assertIn(said, self.client.get(f"/ai/cards/?file={file}").content.decode())
        self.assertIn("Choose a file", self.send("a.png", b""))

    def test_lore(self):
        """Facts are added, tested and switched; what is in them does no harm."""
        for number, text in enumerate(HOSTILE):
            sent = {"act": "add", "book": "town", "keys": f"k{number}", "text": text + " x"}
            self.client.post("/ai/lore/", sent)
        sent = {"act": "add", "book": "town", "keys": "fish", "text": "At the quay."}
        page = self.client.post("/ai/lore/", sent, follow=True)
        self.assertContains(page, "fish: At the quay.")
        self.assertEqual(Harmless.read(page).faults, [])
        wanted = lore().books()["town"].facts[-1].id
        asked = f"/ai/lore/?assistant={self.script.pk}&q=a+fish"
        self.assertContains(self.client.get(asked), f"used: ({wanted})")
        self.client.post("/ai/lore/", {"act": "off", "id": wanted})
        self.assertContains(self.client.get(asked), f"off: ({wanted})")
        page = self.client.post("/ai/lore/", {"act": "burn"}, follow=True)
        self.assertContains(page, "There is no such act.")
