"""The pages of cards and lore: upload, look, test, change."""

from unittest.mock import patch

from django.core.files.uploadedfile import SimpleUploadedFile
from evennia import search_object

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
        self.assertIn("how it is taken in", self.send("nia.png", data))
        self.assertEqual((self.files / "nia.png").read_bytes(), data)
        page = self.client.get("/ai/cards/?file=nia.png").content.decode()
        self.assertIn("A card of Nia, from a PNG file.", page)
        self.assertIn("nia-2.png is there", self.send("nia.png", nasty()))
        self.assertEqual((self.files / "nia.png").read_bytes(), data)
        self.send("../../.evil.jsonl", nasty())
        self.send("noname.json", b'{"name": "", "description": "x"}')
        for bad, said in ((b"x", "this is no JSON"), (data[:60], "in the middle")):
            self.assertIn(said, self.send("bad.png", bad))
        there = {"nia.png", "nia-2.png", "evil.jsonl", "noname.json"}
        self.assertEqual({f.name for f in self.files.iterdir()}, there)
        page = self.client.get("/ai/cards/?file=evil.jsonl")
        self.assertContains(page, "aicard/chat &lt;assistant&gt; = evil.jsonl")
        self.assertContains(page, "Lines by x (439).")
        (self.files / "evil.png").write_bytes(b"x")
        for file, said in (("evil.png", "this is no JSON"), ("../x", "there is no file `x`")):
            self.assertIn(said, self.client.get(f"/ai/cards/?file={file}").content.decode())
        self.assertIn("Choose a file", self.send("a.png", b""))

    def test_the_picture(self):
        """A card's picture is shown to builders alone; other files and names are none."""
        data = png(text_chunk(card(name="Nia")))
        self.send("nia.png", data)
        (self.files / "x.json").write_text("{}")
        page = self.client.get("/ai/cards/?file=nia.png")
        self.assertContains(page, 'src="/ai/cards/picture/?file=nia.png"')
        self.assertEqual(Harmless.read(page).faults, [])
        shown = self.client.get("/ai/cards/picture/?file=nia.png")
        self.assertEqual((shown["Content-Type"], shown.content), ("image/png", data))
        self.assertIn("default-src 'none'", shown["Content-Security-Policy"])
        for other in ("x.json", "../settings.py", "", "none.png"):
            answer = self.client.get("/ai/cards/picture/", {"file": other})
            self.assertEqual(answer.status_code, 400, other)
        self.be("Player")
        self.assertEqual(self.client.get("/ai/cards/picture/?file=nia.png").status_code, 403)

    def test_make_an_assistant(self):
        """It stands where the builder's character is; a name that is borne is refused."""
        self.send("nia.png", png(text_chunk(card(name="Nia", first_mes="Hi"))))
        make = {"act": "make", "file": "nia.png", "name": ""}

        def made(**fields):
            return self.client.post("/ai/cards/", {**make, **fields}, follow=True).content.decode()

        with patch.object(type(self.account), "get_all_puppets", return_value=[]):
            self.assertIn("Go into the game first", made())
        with patch.object(type(self.account), "get_all_puppets", return_value=[self.char1]):
            self.assertIn("Nia has the card nia.png. It is in Room.", made())
            self.assertIn("There is an assistant called Nia", made())
            self.assertIn("Ria has the card", made(name="Ria"))
            self.assertIn("There is a character called Char2", made(name="char2"))
            self.assertIn("there is no file", made(file="none.png"))
        [nia] = search_object("Nia")
        self.assertEqual((nia.location, nia.assistant.config.greetings), (self.room1, ("Hi",)))
        self.assertTrue(nia.assistant.may_change(self.char1))

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
