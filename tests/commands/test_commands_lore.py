"""`ailore`, and lore in a game: who knows what, who hears it, help entries and rooms."""

import json
import random
from contextlib import suppress
from dataclasses import replace
from unittest.mock import patch

from django.db import OperationalError, connection
from evennia import create_object, search_script
from evennia.utils.create import create_help_entry
from twisted.internet.defer import CancelledError, Deferred

from evennia_ai import services
from evennia_ai.assistant_script import all_assistants
from evennia_ai.cards.books import Book, Fact, exported, read_book
from evennia_ai.errors import Refusal
from evennia_ai.game.lore import Lore, known_facts, lore, verdicts
from evennia_ai.game.lore import knows as knows_fact
from evennia_ai.game.lore import tells as tells_fact
from evennia_ai.game.seeing import stable_id
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.staff.lore import book_for, delete, take_book
from tests.base import PLAYED
from tests.command_line import WholePagesTest
from tests.commands.test_commands_card import CardCase
from tests.thoroughness import examples
from tests.waiting import pump_until, wait_for

FISH = "Fish is sold at the harbour market on the east quay."


def plain(texts):
    """A lorebook as other programs write one, with these texts."""
    return {"entries": [{"keys": ["k"], "content": text} for text in texts]}


class TestLore(WholePagesTest, CardCase):
    default = "Hm."

    def found_by(self, line, name="Aria"):
        """What `ailore/test` says of a line."""
        self.typed(f"ailore/test {name} = {line}")
        pump_until(self.shown)
        return self.shown()

    def ask(self, line, speaker=None):
        """The prompts of a turn that answers a line said aloud."""
        self.model.requests.clear()
        self.talk(line, speaker=speaker)
        return repr([request.messages for request in self.model.requests])

    def whisper(self, line, *people):
        """The prompts of a turn that answers a whisper."""
        self.model.requests.clear()
        people[0].at_say(line, msg_self=True, receivers=[self.aria, *people[1:]], whisper=True)
        self.tick()
        return repr([request.messages for request in self.model.requests])

    def imported(self, name, locks, text="t"):
        """A fact of a file, with these locks, into a book; the book, and what is noted."""
        entry = {"keys": ["k"], "content": text, "extensions": {"evennia_ai": locks}}
        return take_book(read_book({"entries": [entry]})[0], book_for(name), "a.json")

    def test_a_fact(self):
        """It is found by a key in another form, shown by `ai/why`, and makes no journal entry."""
        added = "Added: (w1) fish, harbour market: Fish"
        self.assertTold(f"ailore/add town = fish, harbour market: {FISH}", added)
        self.assertIn(FISH, self.ask("Aria, where can I buy fishes?"))
        self.assertTold("ai/why Aria = Hm", "w1", until="w1")
        self.assertEqual(self.aria.journal.count(), 0)
        self.assertRegex(self.found_by("FISH?"), r"(?s)used: \(w1\).*\(by fish\)")
        self.assertIn("No fact is found", self.found_by("hello"))
        self.assertTold("ailore/off w1", "Fact w1 of town is off.")
        self.assertIn("off: (w1)", self.found_by("FISH?"))
        self.assertTold("ailore/on town", "Book town is on.")
        self.assertTold("ailore", "town: 1 fact, known to everybody")
        self.assertTold("ailore/list town", "(w1) fish")
        self.assertTold("ailore/delete w1", "Delete (w1)")
        self.assertTold("ailore/delete w1 = yes", "is deleted")
        self.assertEqual(lore().books(), {})

    def test_know(self):
        """Who knows: by a lock on the assistant, one of them, a place."""
        self.typed(f"ailore/add town = fish: {FISH}")
        for typed, tags, knows in (
            ("tag(guard) or tag(thief)", (), False),
            ("tag(guard) or tag(thief)", ("thief",), True),
            ("not tag(thief)", ("thief",), False),
            ("Aria", (), True),
            ("everybody", (), True),
            ("here", (), True),
            (f"id({self.char2.id})", (), False),
        ):
            self.typed(f"ailore/know w1 = {typed}")
            self.aria.tags.clear()
            for tag in tags:
                self.aria.tags.add(tag)
            told = self.found_by("fish")
            self.assertEqual("used: " in told, knows, (typed, told))
            self.assertEqual(FISH in self.ask("Aria, fish?"), knows, typed)
        self.assertIn("not known to Aria", self.found_by("fish"))
        self.typed("ailore/know w1 = here")
        self.aria.location = self.aria.home = self.room2
        self.assertNotIn("used: ", self.found_by("fish"))
        self.assertTold("ailore/know w1 = nofunc(x)", "there is no lock function `nofunc`")

    def test_tell(self):
        """A secret is in prompts of private turns alone, whose every member passes at the time."""
        pick, told = random.Random(7), 0
        people = [create_object(PLAYED, key=f"P{n}", location=self.room1) for n in range(3)]
        for n, tag in enumerate("xyz"):
            self.typed(f"ailore/add town = key{tag}: Secret{tag}.")
            self.typed(f"ailore/tell w{n + 1} = tag({tag})")
        for n in range(25):
            for person in people if n % 5 == 0 else ():
                person.tags.clear()
                for tag in pick.sample("xyz", pick.randint(0, 3)):
                    person.tags.add(tag)
            circle, tag = pick.sample(people, pick.randint(1, 3)), pick.choice("xyz")
            line, aloud = f"Aria, what of key{tag} {pick.random()}?", pick.random() < 0.4
            prompt = self.ask(line, circle[0]) if aloud else self.whisper(line, *circle)
            for secret in "xyz":
                may = not aloud and all(person.tags.has(secret) for person in circle)
                if f"Secret{secret}" in prompt:
                    self.assertTrue(may, (secret, circle, n))
                    told += 1
                elif may:
                    self.assertNotEqual(secret, tag)
        self.assertGreater(told, 3)
        self.assertIn("not for these ears: (w1)", self.found_by("keyx"))

    def test_forgetting(self):
        """Who typed a fact goes with `aiforget`."""
        self.typed("ailore/add town = fish: x")
        own = stable_id(self.char1)
        self.assertEqual([fact.source for fact in lore().facts()], [own])
        lore().forget([own])
        self.assertEqual([fact.source for fact in lore().facts()], [""])

    def test_books(self):
        """A lorebook comes in, replaces one after a question, and goes out with all it had."""
        entries = {"0": {"key": ["fish"], "content": FISH, "depth": 4}}
        entries["1"] = {"key": [""], "content": "x"}
        book = {"entries": entries, "name": "Town", "scan_depth": 2}
        (self.files / "town.json").write_text(json.dumps(book))
        self.assertTold(
            "ailore/import town.json", "Town: 2 entries: 1 taken, 1 without", until="entry 2"
        )
        self.assertTold("ailore/import town.json", "Type it again", until="again")
        self.assertTold("ailore/import town.json", "Town: 2 entries", until="entry 2")
        self.typed("ailore/tell town = tag(x)")
        self.assertEqual([fact.tell for fact in lore().books()["town"].locked()], ["tag(x)"])
        self.assertTold("ailore/export town", "Written", until="Written")
        out = json.loads((self.files / "Town-lore.json").read_text())
        self.assertEqual((out["entries"], out["scan_depth"]), ([*entries.values()], 2))
        self.assertEqual(out["extensions"], {"evennia_ai": {"tell": "tag(x)"}})
        # A file that is there is never overwritten: it may be of another book.
        for name in ("Sea side", "Sea.side"):
            lore().save(Book(name, lore().books()["town"].facts))
        for name, file in (
            ("sea side", "Sea_side-lore.json"),
            ("sea.side", "Sea_side-lore-2.json"),
        ):
            self.typed(f"ailore/export {name}", until=file)
        files = ("Sea_side-lore.json", "Sea_side-lore-2.json")
        names = [json.loads((self.files / file).read_text())["name"] for file in files]
        self.assertEqual(names, ["Sea side", "Sea.side"])

    def test_meaning(self):
        """A fact is found without its keys, by those who may know it and for those who may hear."""
        self.typed("ailore/add town = king: King Aldric rules the realm.")
        self.typed("ailore/add town = fish, harbour market: Fish is sold at the quay.")
        for locked, typed in ((False, ""), (True, "know w2 = tag(x)"), (True, "tell w2 = tag(x)")):
            if typed:
                self.typed("ailore/know w2 = everybody")
                self.typed(f"ailore/{typed}")
            self.found_by("whatever is sold")  # indexes what has changed
            told = self.found_by("What is sold by the quay?")
            self.assertEqual("used: (w2)" in told and "(by meaning)" in told, not locked, told)
            prompt = self.ask(f"Aria, what is sold by the quay? {typed}")
            self.assertEqual("Fish is sold at the quay" in prompt, not locked, typed)
        wait_for(self.script.mind.recall.clear("lore all tag(x)"))
        self.script.mind.recall.replaced += 1
        self.found_by("sold by the quay")
        self.assertEqual(self.indexed("lore all tag(x)"), 1)

    def indexed(self, scope):
        """How many texts a scope of the index has."""
        return wait_for(self.script.mind.recall.count(scope))

    def test_no_text_stays_in_the_index(self):
        """Neither of a deleted or locked fact nor of the game, also after another start."""
        acts = ("delete w1", "delete town", "off w1", "know w1 = tag(x)", "tell town = tag(x)")
        for typed in acts:
            lore().save(Book("town", (Fact(("vault",), "The word is xyzzy.", id="w1"),)))
            self.found_by("the vault")
            self.assertEqual(self.indexed("lore all "), 1, typed)
            services.kept("lore", Lore).__init__()  # as a new process knows it
            self.typed(f"ailore/{typed}")
            if typed.startswith("delete"):
                self.typed(f"ailore/{typed} = yes")
            self.assertEqual(self.indexed("lore all "), 0, typed)
        create_help_entry("Salt", "It is white.", category="lore")
        self.configure(knows=["help:lore"])
        self.aria.ndb.ai_facts = None
        self.found_by("the vault")
        scope = f"lore of {self.script.scope}"
        self.assertEqual(self.indexed(scope), 1)
        services.kept("lore", Lore).__init__()
        self.configure(knows=[])
        self.aria.ndb.ai_facts = None
        self.found_by("the vault")
        self.assertEqual(self.indexed(scope), 0)

    def test_searches_run_together(self):
        """A line waits once for all locks, and not at all if it says nothing to look for."""
        for n in range(1, 7):
            self.typed(f"ailore/add town = key{n}: Fact {n} of the harbour.")
            self.typed(f"ailore/know w{n} = not id({n + 1000})")
        wait_for(verdicts(self.aria, "harbour", "harbour", PUBLIC))
        searches = []

        def hang(*_):
            searches.append(Deferred())
            return searches[-1]

        with patch.object(type(self.script.mind.recall), "search", hang):
            self.assertTrue(verdicts(self.aria, "Aria, hi", "Aria, hi", PUBLIC).called)
            self.assertEqual(searches, [])
            running = verdicts(self.aria, "harbour", "harbour", PUBLIC)
            self.assertEqual(len(searches), 6)
            running.cancel()
            failures = []
            running.addErrback(failures.append)
            self.assertIs(failures[0].type, CancelledError)

    def test_without_lore_no_query(self):
        """Neither for the script, which is made with the first fact, nor for its books."""
        wait_for(verdicts(self.aria, "fish", "fish", PUBLIC))
        with self.assertNumQueries(0):
            self.assertEqual(wait_for(verdicts(self.aria, "fish", "fish", PUBLIC)), [])
        self.typed("ailore/add town = fish: x")
        self.found_by("fish")
        with self.assertNumQueries(0):
            self.assertEqual(len(wait_for(verdicts(self.aria, "fish", "fish", PUBLIC))), 1)
        search_script("ai_world").get().delete()
        self.assertEqual(lore().books(), {})
        self.typed("ailore/add town = fish: y")
        self.assertEqual([fact.text for fact in lore().facts()], ["y"])

    def test_a_failed_reading_is_no_empty_lore(self):
        """Where the database fails as the books are read, they are read again."""
        self.typed("ailore/add town = fish: x")
        read, failed = Lore(), OperationalError("the connection is gone")

        def fail(*_):
            raise failed

        with connection.execute_wrapper(fail), self.assertRaises(OperationalError):
            read.books()
        connection.needs_rollback = False  # it concerns the transaction of the test alone
        self.assertEqual([fact.text for fact in read.facts()], ["x"])

    def shown_to(self, bodies, circles, name=None):
        """Texts in use of a book, or of all, with who knows them and which circle is told."""
        facts = lore().books()[name.lower()].locked() if name else lore().facts()
        return {
            (fact.text, body, circle)
            for fact in facts
            for body in bodies
            for circle in circles
            if fact.on and knows_fact(body, fact.know)
            if not fact.tell or tells_fact(fact.tell, circle)
        }

    def test_locks_go_out_and_in(self):
        """Under another name the same viewers see the same facts; without locks no more."""
        pick, texts = random.Random(3), [f"Text {n}." for n in range(4)]
        people = [create_object(PLAYED, key=f"P{n}", location=self.room1) for n in range(3)]
        people[0].tags.add("x")
        people[1].tags.add("y")
        aria, place = f"npc:{stable_id(self.aria)}", f"place:{stable_id(self.room2)}"
        knows = ("", "all", aria, place, "lock:tag(x)", "lock:not tag(x)")
        tells, circles = ("", "tag(x)", "tag(x) or tag(y)"), [PUBLIC]
        circles += [private(map(stable_id, circle)) for circle in (people[:1], people[:2], people)]

        def import_as(name, data):
            take_book(read_book(data)[0], book_for(name), "a.json")
            return self.shown_to((self.aria, *people), circles, name)

        for n in range(examples(40)):
            chosen = pick.choices(texts, k=pick.randint(1, 5))
            facts = [
                replace(fact, on=pick.random() < 0.8, id=f"w{n}", know=pick.choice(knows))
                for n, fact in enumerate(read_book(plain(chosen))[0].facts)
            ]
            facts = [replace(fact, tell=pick.choice(tells)) for fact in facts]
            book = Book("Old", tuple(facts), pick.choice(knows[1:]), pick.choice(tells))
            lore().save(book)
            before = self.shown_to((self.aria, *people), circles, "Old")
            data = json.loads(json.dumps(exported(book)))
            bare = {"entries": [{**raw, "extensions": {}} for raw in data["entries"]]}
            self.assertLessEqual(import_as("Bare", bare), before, book)
            delete("Bare")
            delete(book.name)
            self.assertEqual(import_as("Other", data), before, book)
            delete("Other")

    def test_an_import_opens_nothing(self):
        """What is locked here, by its own lock or its book's, is shown to no more than before.

        Whatever locks the file has, as a book or a card, into the same book or another.
        """
        pick, texts = random.Random(5), ["Gold.", "Fish.", "Bees."]
        person = create_object(PLAYED, key="Pim", location=self.room1)
        person.tags.add("x")
        bodies, circles = (self.aria, person), [PUBLIC, private([stable_id(person)])]
        knows = ("", "", "all", f"npc:{stable_id(self.aria)}", "lock:tag(x)", "lock:not tag(x)")
        tells = ("", "", "tag(x)", "tag(y)", "not tag(y)")
        asked = {"know": (*knows, "all()", "everybody", "odd(x)"), "tell": (*tells, "all()")}

        def locks():
            return {"evennia_ai": {name: pick.choice(values) for name, values in asked.items()}}

        for n in range(examples(300, 24)):
            for name in ("Old", "Else"):
                facts = []
                for number, text in enumerate(pick.sample(texts, 2)):
                    own = {"know": pick.choice(knows), "tell": pick.choice(tells)}
                    is_on = pick.random() < 0.9
                    facts.append(Fact(("k",), text, on=is_on, id=f"w{number}", **own))
                lore().save(Book(name, tuple(facts), pick.choice(knows[2:]), pick.choice(tells)))
            before, here = self.shown_to(bodies, circles), {fact.text for fact in lore().facts()}
            books, name = list(lore().books().values()), "Old" if n % 2 else "New"
            entry = {"keys": ["k"]}
            entries = [{**entry, "content": text, "extensions": locks()} for text in sorted(here)]
            data = {"entries": entries}
            data |= {"extensions": locks()} if pick.random() < 0.5 else {}
            is_of_card = n % 4 == 0
            book = book_for(name, f"npc:{stable_id(self.aria)}" if is_of_card else "")
            notes = []
            with suppress(Refusal):
                _, notes = take_book(read_book(data)[0], book, "a.json", is_of_card=is_of_card)
            after = self.shown_to(bodies, circles)
            self.assertLessEqual(after, before, (n, books, data, notes))
            for book in list(lore().books().values()):
                delete(book.name)

    def test_locks_that_cannot_be_read(self):
        """Nobody passes them; a card says to nobody but its assistant."""
        for locks in ("x", {"tell": "odd(x)"}, {"know": "lock:a b"}, {"know": 3}, {"tell": ["x"]}):
            book, notes = self.imported("Odd", locks)
            self.assertIn("false()", repr(book.facts), locks)
            self.assertIn("cannot be read: w", repr(notes), locks)
            delete(book.name)
        for word in ("everybody", "all", "All()"):
            book, notes = self.imported("Odd", {"know": word, "tell": word})
            [fact] = book.locked()
            self.assertEqual((fact.know, fact.tell, fact.on, notes), ("all", "", True, []), word)
        locks = {"evennia_ai": {"know": "all", "tell": "tag(x)"}}
        entry = {"keys": ["k"], "content": "t", "extensions": locks}
        self.put("nia.png", name="Nia", character_book={"entries": [entry]})
        self.typed("aicard/import nia.png", until="taken")
        [fact] = lore().books()["nia"].locked()
        self.assertEqual((fact.know[:4], fact.tell), ("npc:", "tag(x)"))
        self.typed(f"ailore/know {fact.id} = Aria")
        self.assertEqual(self.exported("Nia")["character_book"]["entries"], [])

    def put_book(self, *texts):
        """Import a book of these facts over the one of its name; what is said."""
        entries = [{"keys": [f"k{n}"], "content": text} for n, text in enumerate(texts)]
        (self.files / "town.json").write_text(json.dumps({"name": "Town", "entries": entries}))
        if "town" in lore().books():
            self.typed("ailore/import town.json", until="again")
        return self.typed("ailore/import town.json", until="entries: ")

    def facts(self):
        """The facts of the book with their locks."""
        facts = lore().books()["town"].locked()
        return [(fact.text, fact.know, fact.tell, fact.on) for fact in facts]

    def test_a_secret_stays_one(self):
        """A book with locks or facts that are off is not replaced; its texts come in off."""
        self.put_book("Gold lies here.", "A well.")
        self.put_book("Gold lies here.", "A well.", "Bees.")
        for typed in ("tell w3 = tag(x)", "know w3 = Aria", "off w3"):
            self.typed(f"ailore/{typed}")
            kept = self.facts()
            self.typed("ailore/import town.json", until="again")
            self.typed("ailore/import town.json", until="Town has locks, or facts that are off.")
            self.assertEqual(self.facts(), kept)
            book, notes = self.imported("Other", {}, "Gold  lies HERE.")
            self.assertEqual([fact.on for fact in book.facts], [False])
            self.assertIn("Off until you look at them", repr(notes))
            delete("Other")
            for undo in ("tell w3 = all", "know w3 = all", "on w3"):
                self.typed(f"ailore/{undo}")
        self.typed("ailore/know town = perm(Admin)")
        self.typed("ailore/import town.json", until="again")
        self.typed("ailore/import town.json", until="Town has locks, or facts that are off.")
        self.typed("ailore/delete town")
        self.typed("ailore/delete town = yes")
        self.assertNotIn("Off until", self.put_book("Gold lies here."))

    def test_a_card_takes_no_book_of_others(self):
        """Neither a new assistant nor one that is here; nothing is made or changed."""
        for name in ("Town", "Aria"):
            self.typed(f"ailore/add {name} = well: The town's own.")
            book = {"entries": [{"keys": ["mother"], "content": "A secret."}]}
            self.put("c.png", name=name, description="Another.", character_book=book)
            before = lore().books()[name.lower()], len(all_assistants()), self.script.config
            self.typed("aicard/import c.png", until=name)
            self.typed("aicard/import c.png", until=f"There is a book {name} that is not")
            after = lore().books()[name.lower()], len(all_assistants()), self.script.config
            self.assertEqual(after, before)

    def test_refusals(self):
        """What is wrong, and the remedy."""
        for typed, said in (
            ("ailore/list no", "There is no book `no`. Books: none."),
            ("ailore/add town = fish", "Usage: ailore/add"),
            ("ailore/add town = : text", "keys: none is usable"),
            ("ailore/add a/b = k: text", "A book's name"),
            ("ailore/add town = /[/: text", "a regular expression, is not used"),
            (f"ailore/add town = k: {'x' * 2_001}", "at most 2,000 characters"),
            ("ailore/know w9 = all", "There is no book `w9`"),
        ):
            self.assertIn(said, self.typed(typed), typed)
        self.be("Player")
        self.assertIn("is not available", self.typed("ailore"))

    def test_texts_of_the_game(self):
        """Help entries by their locks, and rooms with the way there."""
        create_help_entry("tides", "High tide is at noon.", "lore")
        create_help_entry("vault", "The code is 12.", "lore", locks="read:perm(Admin)")
        create_help_entry("cmd", "A command.", "general")
        self.room2.key, self.room2.db.desc = "The Cellar", "Barrels of wine."
        self.typed("aiconfig Aria knows = help:lore, rooms:2")
        self.aria.home = self.room1
        texts = repr(known_facts(self.aria)[0])
        for said in ("High tide", "Cellar: Barrels of wine. The way from"):
            self.assertIn(said, texts)
        for secret in ("The code", "A command"):
            self.assertNotIn(secret, texts)
        prompt = self.ask("Aria, how do I get to the cellar?")
        self.assertIn("Barrels of wine. The way from Room: out", prompt)
        self.room2.db.desc = "It is empty."
        self.assertIn("Barrels", repr(known_facts(self.aria)[0]))
        self.aria.ndb.ai_facts = None
        self.assertIn("It is empty", repr(known_facts(self.aria)[0]))
        self.assertTold("aiconfig Aria knows = rooms:9", "takes a list such as help:lore")

    def test_who_is_gone_locks_nothing(self):
        """A card's book that only a deleted assistant knew is the new one's; its texts are on."""
        book = {"entries": [{"keys": ["soup"], "content": "It is hot."}]}
        self.put("nia.png", name="Nia", character_book=book)
        for name in ("Nia", "Mia"):
            self.typed(f"aicard/import nia.png = {name}", until="1 taken")
            self.assertIn("used: ", self.found_by("soup", name))
            self.typed(f"ai/delete {name}")
            self.typed(f"ai/delete {name} = yes", until="is deleted")
        told = self.typed("aicard/import nia.png", until="1 taken")
        self.assertNotIn("Off until", told)
        self.assertIn("used: ", self.found_by("soup", "Nia"))

    def test_lore_of_a_card(self):
        """A card's book is known to its assistant alone, and goes out with it."""
        soup = {"keys": ["soup"], "content": "{{char}} makes it.", "x": 1}
        book = {"entries": [soup, {"keys": []}]}
        self.put("nia.png", name="Nia", character_book=book)
        self.assertTold("aicard/import nia.png", "Lorebook: 2 entries: 1 taken", until="entry 2")
        self.assertIn("used: (w1) soup: Nia makes it.", self.found_by("soup", "Nia"))
        self.assertIn("not known to Aria", self.found_by("soup"))
        self.assertEqual(self.exported("Nia")["character_book"], book)  # this game's locks stay
        self.typed("ailore/off w1")
        entries = self.exported("Nia")["character_book"]["entries"]
        states = [(entry.get("x"), entry.get("enabled")) for entry in entries]
        self.assertEqual(states, [(1, False), (None, None)])
