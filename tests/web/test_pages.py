"""The staff's pages: who sees what, what stands there, and what can be done."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urljoin

from django.contrib.messages import ERROR
from django.test import Client, override_settings
from evennia import create_account
from twisted.internet.defer import maybeDeferred

import evennia_ai
from evennia_ai.game.seeing import stable_id
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction import build_llm_messages
from evennia_ai.llm_interaction.budget import REGIONS
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.rag_memory.entities import new_profile, observe
from evennia_ai.rag_memory.ledger import PROPOSED
from evennia_ai.sleep.compaction import compact_conversation_history
from evennia_ai.sleep.compaction.rollback import rollback_compaction
from evennia_ai.staff.show import marked
from evennia_ai.turns.spend_book import Amount
from evennia_ai.web.site import ADMIN, BUILDER, UNTYPED
from evennia_ai.web.urls import PAGES
from tests.base import AssistantTest
from tests.command_line import CommandLineTest
from tests.waiting import wait_for

TOKEN = "a-long-random-text"
SECRET = "the-cellar-key-is-under-the-stone"
HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "{{ settings.SECRET_KEY }}",
    "{% debug %}",
    "[link](javascript:alert(1))",
    "\u202ethgir\u202c",
    "' autofocus onfocus=alert(1) x='",
    "&lt;b&gt;",
    "<!-- --><plaintext>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<form action=//evil.example><input name=csrfmiddlewaretoken>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "</textarea><script>alert(1)</script>",
    '" hx-get="/ai/log/" hx-trigger="load',
    "<div data-chart=stacked data-source=chart></div>",
    "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e",
    "**bold** `code` # head\n> quote\n- list",
    "|rred|n |lclook|ltlook|le |[001",
    "z\u0335\u0321\u0327a\u0336l\u0337g\u0338o" * 20,
    "a\u200bb\u2060c\ufeffd\u00ad",
    "\x1b[31mred\x1b[0m\x07",
)


class Harmless(HTMLParser):
    """Reads a page: its text, and whatever in it no template of ours makes."""

    TAGS = re.compile(
        "html|head|meta|title|link|script|body|a|header|nav|img|ul|li|main|h1|h2|p|ol|span|time|b|"
        "code|form|label|input|select|option|button|div|table|thead|tbody|tr|th|td|meter|br|kbd|"
        "figure|figcaption|blockquote|footer|details|summary|s|dl|dt|dd|textarea|mark"
    )
    PLACES = ("href", "src", "action", "formaction", "hx-get")

    def __init__(self):
        super().__init__()
        self.text, self.faults, self.links, self.labels = "", [], [], 0

    @classmethod
    def read(cls, response):
        """A response, read."""
        page = cls()
        page.feed(response.content.decode())
        page.close()
        return page

    def handle_starttag(self, tag, attrs):
        if not self.TAGS.fullmatch(tag):
            self.faults.append(f"<{tag}>")
        given = dict(attrs)
        self.labels += tag == "label"
        self.links += [given["href"]] if tag == "a" else []
        is_field = tag in ("input", "select", "textarea") and given.get("type") != "hidden"
        if is_field and not self.labels and "aria-label" not in given:
            self.faults.append(f"{tag} without a name")
        if tag == "script" and "src" not in given and given.get("type") != "application/json":
            self.faults.append("a script")
        for name, value in given.items():
            if name.startswith("on") or name == "style":
                self.faults.append(f"{tag} {name}")
            if name in self.PLACES and not re.match(r"(/(?!/)|[?#])", value or ""):
                self.faults.append(f"{tag} {name}={value}")

    def handle_endtag(self, tag):
        self.labels -= tag == "label"

    def handle_comment(self, data):
        self.faults.append(f"<!--{data}-->")

    def handle_data(self, data):
        self.text += data


@override_settings(ROOT_URLCONF="tests.web.urls")
class BrowsingTest(CommandLineTest):
    """A browser of `self.account`, whose requests are answered on the test's own thread."""

    def setUp(self):
        super().setUp()
        self.client = Client()
        self.client.force_login(self.account)

        def answered(work):
            return wait_for(maybeDeferred(work))

        self.enterContext(patch("evennia_ai.web.site.on_reactor", answered))


class PagesTest(BrowsingTest):
    """A browser of staff, and an assistant who was told things."""

    def addresses(self, message="m1"):
        """An address of each page."""
        parts = {"<int:assistant>": str(self.script.pk), "<str:message>": message}
        for page in PAGES:
            route = page.route
            for each, value in {**parts, "<str:summary>": "s1"}.items():
                route = route.replace(each, value)
            yield page, f"/ai/{route}"

    def said(self, text, who="Bob", audience="public", channel="say"):
        """Let the assistant hear a line; returns its message."""
        speaker = Speaker(who, "o9.abc")
        heard = Message("user", text, speaker=speaker, audience=audience, channel=channel)
        return self.script.history.append([heard])[0]

    def assertShows(self, response, *words):  # noqa: N802 - unittest's own form
        """The page is there and holds these words."""
        self.assertEqual(response.status_code, 200)
        text = unescape(response.content.decode())
        self.assertEqual([each for each in words if each not in text], [])

    def assertHides(self, response, *words):  # noqa: N802 - unittest's own form
        """The page is there and does not hold these words."""
        self.assertEqual(response.status_code, 200)
        text = unescape(response.content.decode())
        self.assertEqual([each for each in words if each in text], [])


class TestWhoSeesWhat(PagesTest):
    """Anonymous, player, builder and admin against every page and act."""

    def test_ranks(self):
        """Each page is for its rank and above; nobody else learns anything from it.

        Every answer forbids other hosts, inline scripts and frames.
        """
        self.said(f"whispered: {SECRET}", audience=private(["o9.abc"]), channel="whisper")
        for rank, least in ((None, 99), ("Player", 99), ("Builder", BUILDER), ("Admin", ADMIN)):
            browser = Client()
            if rank:
                self.be(rank)
                browser.force_login(self.account)
            for page, address in self.addresses():
                with self.subTest(rank=rank, page=page.name):
                    response = browser.get(address)
                    text = response.content.decode()
                    policy = response["Content-Security-Policy"]
                    self.assertIn("default-src 'none'", policy)
                    self.assertNotIn("unsafe", policy)
                    if rank is None:
                        self.assertEqual(response.status_code, 302)
                        self.assertIn("/auth/login", response["Location"])
                    elif least == 99 or page.least > least:
                        self.assertEqual(response.status_code, 403)
                    else:
                        self.assertIn(response.status_code, (200, 400, 404))
                    if rank != "Admin":
                        self.assertNotIn(SECRET, text)
                        if rank != "Builder":
                            self.assertNotIn("Gilded", text)

    def test_acts_of_others(self):
        """Who may not see a page cannot act on it, and an act without its token is refused."""
        for rank in ("Player", "Builder"):
            self.be(rank)
            response = self.client.post(
                f"/ai/{self.script.pk}/memory/", {"act": "forget", "id": "e1"}
            )
            self.assertEqual(response.status_code, 403)
            if rank == "Player":
                for address in ("/ai/cards/", "/ai/lore/"):
                    self.assertEqual(self.client.post(address, {"act": "add"}).status_code, 403)
        self.be("Admin")
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(self.account)
        response = strict.post(f"/ai/{self.script.pk}/options/", {"act": "preset"})
        self.assertEqual(response.status_code, 403)

    def test_looks_at_private_talk_are_logged(self):
        """Reading private talk leaves a line in the audit log; reading public talk leaves none."""
        self.said("The ale is good.")
        self.client.get(f"/ai/{self.script.pk}/talk/")
        self.assertEqual(self.logged("looked"), [])
        self.said(SECRET, audience=private(["o9.abc"]), channel="whisper")
        self.assertShows(self.client.get(f"/ai/{self.script.pk}/talk/"), SECRET)
        [look] = self.logged("looked")
        self.assertEqual((look["page"], look["private"]), ("talk", 1))
        self.assertEqual(look["by"], stable_id(self.account))
        profile = observe(new_profile("o9.abc", "Zed", 1.0), SECRET, 1.0, "m1", private(["o9.abc"]))
        self.script.obj.entities.put({profile.id: profile})
        self.assertShows(self.client.get(f"/ai/{self.script.pk}/memory/"), SECRET)
        self.assertEqual([look["page"] for look in self.logged("looked")], ["talk", "memory"])
        self.script.obj.entities.put({}, [profile.id])

    def test_link_from_the_site(self):
        """The menu of the game's site leads staff to the pages, and nobody else."""
        link = 'href="/ai/">Assistants'
        self.assertHides(Client().get("/"), link)
        for rank, shown in (("Player", False), ("Builder", True), ("Admin", True)):
            self.be(rank)
            page = self.client.get("/")
            self.assertShows(page, "Characters", "Help", *([link] if shown else []))
            if not shown:
                self.assertHides(page, link)
        with override_settings(ROOT_URLCONF="evennia.web.urls"):
            self.assertHides(self.client.get("/"), "Assistants")


class TestWhatTheyShow(PagesTest):
    """The pages as an admin sees them."""

    def test_hostile_texts(self):
        """Names, lines and descriptions are text: none makes an element, a handler or a link."""
        script, now = self.script, self.script.now()
        bodies = script.obj.entities
        heard = [self.said(text, who=text) for text in HOSTILE]
        for number, text in enumerate(HOSTILE):
            script.obj.journal.add(text)
            profile = new_profile(f"o{number}.x", text, now)
            bodies.put({profile.id: observe(profile, text, now, heard[number].id)})
        for number, text in enumerate(HOSTILE[:10]):
            by = Speaker(text, f"o{number}.note")
            script.ledger.add(text, by, state=PROPOSED, kind="fact")
        for text in HOSTILE:
            script.obj.key = text
            script.obj.db.desc = script.obj.location.key = text
            script.runtime.trouble.text = text
            shown = self.page_of("assistants")
            self.assertIn(" ".join(text.split()), " ".join(shown.text.split()))
        script.state.configure({"persona": "\n".join(HOSTILE)})
        for message in (heard[0], heard[-1]):
            for page, address in self.addresses(message.id):
                with self.subTest(page=page.name):
                    self.assertEqual(Harmless.read(self.client.get(address)).faults, [])
        talk = self.page_of("talk").text
        missing = [text for text in HOSTILE if text.strip() not in talk]
        self.assertEqual(missing, [])

    def page_of(self, name, query=""):
        """A page, read as a browser reads it; its faults are checked."""
        at = next(address for page, address in self.addresses() if page.name == name)
        found = Harmless.read(self.client.get(f"{at}?{query}"))
        self.assertEqual(found.faults, [])
        return found

    def test_talk_is_filtered_and_paged(self):
        """Who, words, channel and audience narrow the talk; older lines are a page further."""
        for number in range(120):
            self.said(f"line {number} of ale", who="Bob" if number % 2 else "Eve")
        self.said("under the stone", audience=private(["o9.abc"]), channel="whisper")
        at = f"/ai/{self.script.pk}/talk/"
        self.assertShows(self.client.get(at), "line 119 of ale")
        self.assertHides(self.client.get(at), "line 3 of ale")
        older = re.search(r"before=(\w+)", self.client.get(at).content.decode())[1]
        page = self.client.get(f"{at}?before={older}")
        self.assertShows(page, "line 69 of ale")
        self.assertHides(page, "line 119 of ale")
        self.assertHides(self.client.get(f"{at}?who=eve"), "line 119 of ale")
        self.assertShows(self.client.get(f"{at}?q=LINE+7+of"), "<mark>line 7 of</mark> ale")

    def test_why_from_a_reply(self):
        """From a reply its prompt's regions, what it answers and its cost are seen."""
        self.assertEqual(self.talk("Aria, is there ale?", "Aye, dark ale and light."), "turn")
        reply = next(m for m in reversed(self.script.history.messages()) if m.role == "assistant")
        page = self.client.get(f"/ai/{self.script.pk}/why/{reply.id}/")
        for words in ("It answers:", "is there ale?", "History", "scripted/model"):
            self.assertShows(page, words)
        sent = self.model.requests[-1].messages[0]["content"]
        self.assertShows(page, "The whole prompt", sent.splitlines()[0], '"name": "noop"')
        self.script.runtime.forget(["o9.abc"], "")
        self.assertShows(self.client.get(f"/ai/{self.script.pk}/why/{reply.id}/"), "It is not kept")

    def test_links_lead_on(self):
        """After a talk that was compacted each link of each page leads to a page."""
        self.configure(compact_preserve_window=4)
        for number in range(8):
            self.talk(f"Aria, where is mill {number}?", f"By the river, {number} steps on.")
        self.model.default = "Bob asked for the mills by the river."
        self.typed("compact Aria", until="compacted")
        reply = next(m.id for m in self.script.history.messages() if m.role == "assistant")
        [summary] = self.script.history.summary_ids()
        links = set()
        for page, address in self.addresses(reply):
            if page.name == "picture":
                continue
            address = address.replace("/s1/", f"/{summary}/")
            read = Harmless.read(self.client.get(address))
            self.assertEqual(read.faults, [], page.name)
            links |= {urljoin(address, link) for link in read.links}
        for link in links:
            with self.subTest(link=link):
                self.assertEqual(self.client.get(link, follow=True).status_code, 200)

    def test_a_scene(self):
        """Who said what to whom in a room, in order; what was whispered is marked and noted."""
        self.talk("Aria, is there ale?", "Dark ale and light.")
        self.char1.at_say("the red key", msg_self=True, receivers=[self.aria], whisper=True)
        self.tick()
        at = f"/ai/{self.script.pk}/scene/"
        read = Harmless.read(self.client.get(at))
        self.assertEqual(read.faults, [])
        text = " ".join(read.text.split())
        self.assertIn(f"{self.room1.key}, as Aria hears it", text)
        self.assertRegex(text, r"Char says to Aria .* is there ale\?.*Aria says to Char")
        self.assertRegex(text, r"Char whispers to Aria private: .* the red key")
        self.assertEqual(self.logged("looked")[-1]["page"], "scene")
        self.aria.location = self.room2
        self.say("Aria, what now?")
        self.assertHides(self.client.get(at), "is there ale?")
        self.assertShows(self.client.get(f"{at}?room={stable_id(self.room1)}"), "is there ale?")
        self.assertShows(self.client.get(f"{at}?room=o999.x"), "Nothing was heard here yet")

    def test_the_log(self):
        """Lines of one name or kind; it offers the names that stand there, also after a rename."""
        self.script.audit("tool", name="look")
        self.aria.key = "Cora"
        self.script.audit("error", what="lost")
        page = self.client.get("/ai/log/?assistant=Aria")
        self.assertShows(page, "Aria tool: name look", "<option>Cora</option>")
        self.assertHides(page, "what lost")
        self.script.audit(
            "looked", by=stable_id(self.account), people=[stable_id(self.char1), "o9.x"]
        )
        page = self.client.get("/ai/log/?kind=looked")
        self.assertShows(page, f"by {self.account.key}, people [")
        self.script.audit("looked", by="a9.gone")
        self.assertShows(
            self.client.get("/ai/log/?kind=looked"), "by somebody who is gone (a9.gone)"
        )
        self.assertShows(self.client.get("/ai/log/?kind=error"), "Cora error: what lost")

    def test_answers_that_fell_back(self):
        """Their number and share stand in the list and in the state."""
        self.script.runtime.counts.update({"answers": 8, "fell back": 2})
        told = "8 answers, 2 of them (25%) by the offline model"
        for address in ("/ai/", f"/ai/{self.script.pk}/"):
            self.assertShows(self.client.get(address), told)

    def test_spend(self):
        """Calls of a model without a price say so; who is gone is named in words, not by a key."""
        tokens = {"prompt_tokens": 1234, "completion_tokens": 5}
        reply = ModelReply(content="Aye.", model="new/model", cost=None, **tokens)
        self.assertEqual(self.talk("Aria, is there ale?", reply), "turn")
        for address in ("/ai/", "/ai/spend/", f"/ai/{self.script.pk}/"):
            page = self.client.get(address)
            self.assertShows(page, "no price known")
            self.assertHides(page, "0.0000")
        shared, now = self.script.shared_spend, self.script.now()
        shared.count(Amount(1, 10, cost=0.5), now, "s999.gone", "probe", "new/model", "a9.gone")
        page = self.client.get("/ai/spend/")
        self.assertShows(page, ">deleted<", ">check of the model<", ">new/model<")
        self.assertHides(page, ">a9.gone<", ">s999.gone<", ">probe<")

    def test_chart_of_prompts(self):
        """It has the regions of the prompt of each reply, oldest first, also of archived ones."""
        for _ in range(2):
            self.talk("Aria, is there ale?", ModelReply(content="Aye.", prompt_tokens=9))
        address = f"/ai/{self.script.pk}/budget/"
        text = self.client.get(address).content.decode()
        chart = json.loads(re.search(r'<script id="chart"[^>]*>(.*?)</script>', text)[1])
        self.assertEqual(len(chart["at"]), 2)
        self.assertEqual(chart["at"], sorted(chart["at"]))
        self.assertTrue(all(chart["System"]) and all(chart["limit"]))
        held = {region for region in REGIONS if any(chart.get(region, ()))}
        self.assertEqual(set(chart), {"at", "limit", *held})
        self.assertIn("in 9, out 0 tokens", text)

    def test_compactions_on_the_chart(self):
        """They are marked where they happened; one that was taken back says so."""
        self.fill(40, words=30)
        self.model.default = "They talked about the ferry."
        address = f"/ai/{self.script.pk}/budget/"
        self.assertHides(self.client.get(address), "Compactions: ")
        wait_for(compact_conversation_history(self.script, self.aria, force=True))
        self.assertShows(self.client.get(address), "Compactions: ", "(manual)")
        wait_for(self.script.run_exclusive(lambda: rollback_compaction(self.script)))
        self.assertShows(self.client.get(address), "(manual, taken back ")

    def test_wide_tables_on_a_phone(self):
        """Each cell of a table that becomes cards on a phone names its column."""
        self.talk("Aria, is there ale?")
        for address in ("/ai/", "/ai/spend/", f"/ai/{self.script.pk}/budget/"):
            text = self.client.get(address).content.decode()
            for table in re.findall(r'<div class="scroll".*?</div>', text, re.DOTALL):
                cells = re.findall(r"<td(?! colspan)[^>]*>", table)
                self.assertEqual([cell for cell in cells if 'data-label="' not in cell], [])

    def test_a_broken_assistant_is_one_bad_row(self):
        """The list shows the others, and that one as broken."""
        self.script.attributes.add("conversation_tail", [{"id": 7, "role": "user", "content": []}])
        with patch("evennia_ai.staff.status.overview", side_effect=ValueError("no such thing")):
            page = self.client.get("/ai/")
        self.assertShows(page, "broken: ")

    def test_checks_come_one_by_one(self):
        """The doctor's page asks for each check by itself, and a link on it makes all of them."""
        page = self.client.get("/ai/doctor/")
        self.assertShows(page, "?check=all", "?check=settings", "?check=memory")
        page = self.client.get("/ai/doctor/?check=memory")
        self.assertShows(page, "in memory", "?check=settings")
        self.assertHides(page, 'hx-get="?check=memory"')
        page = self.client.get("/ai/doctor/?check=nonsense")
        self.assertShows(page, "?check=settings", "?check=model")
        self.assertHides(self.client.get("/ai/doctor/?check=all"), "?check=")

    def test_odd_numbers_and_unknown_ids(self):
        """Odd values in an address give a page or a plain answer, never an error."""
        for query in ("spend/?days=x", "spend/?days=-1", "spend/?by=secret&only=1"):
            self.assertEqual(self.client.get(f"/ai/{query}").status_code, 200)
        for page in ("why/m9/", "summaries/s9/"):
            self.assertEqual(self.client.get(f"/ai/{self.script.pk}/{page}").status_code, 404)
        self.assertEqual(self.client.get("/ai/99999/").status_code, 404)


class TestActs(PagesTest):
    """What staff can do: checked like the commands, with a line in the audit log."""

    def send(self, page, **fields):
        """Send a form; returns the page that follows."""
        return self.client.post(f"/ai/{self.script.pk}/{page}/", fields, follow=True)

    def test_options(self):
        """A value is set by the checks of `aiconfig`, and restored."""
        shown = self.send("options", act="set", option="max_react_iterations", value="3")
        self.assertShows(shown, "max_react_iterations is now 3")
        self.assertEqual(self.script.config.max_react_iterations, 3)
        restored = self.send("options", act="default", option="max_react_iterations")
        self.assertShows(restored, "is the default again: 8")
        wrong = self.send("options", act="set", option="max_react_iterations", value="many")
        self.assertShows(wrong, "not 'many'")
        self.assertEqual(self.script.config.max_react_iterations, 8)
        self.assertEqual([line["act"] for line in self.logged("configured")], ["set", "set"])

    def test_fields_fit_their_kinds(self):
        """Each kind of option has a field of its own, labelled in words."""
        page = self.client.get(f"/ai/{self.script.pk}/options/").content.decode()
        for name, field in (
            ("compact_auto", r'<input type="checkbox" role="switch" [^>]* checked'),
            ("max_react_iterations", '<input [^>]*type="number"'),
            ("persona", "<textarea "),
            ("llm_fallback_models", "<textarea [^>]*one on each line"),
            ("spend_caps.tokens_day", '<input [^>]*value=""[^>]*type="number"'),
        ):
            form = re.search(rf'name="option" value="{re.escape(name)}">(.*?)</form>', page)[1]
            self.assertRegex(form, field)
        labels = re.findall(r'<label[^>]*>([^<]*)|aria-label="([^"]*)"', page)
        self.assertEqual([each for each in labels if "_" in "".join(each)], [])

    def test_what_the_fields_send(self):
        """A switch sends on or off, a list one name a line, an empty number None."""
        for values, flag in ((["False"], False), (["False", "True"], True)):
            self.send("options", act="set", option="compact_auto", value=values)
            self.assertIs(self.script.config.compact_auto, flag)
        with override_settings(EVENNIA_AI_MODELS=["a/*"]):
            self.send("options", act="set", option="llm_fallback_models", value="a/x\r\na/y")
            self.assertEqual(self.script.config.llm_fallback_models, ("a/x", "a/y"))
        self.send("options", act="set", option="spend_caps.tokens_day", value="7")
        self.assertEqual(self.script.config.spend_caps["tokens_day"], 7)
        self.send("options", act="set", option="spend_caps.tokens_day", value="")
        self.assertIsNone(self.script.config.spend_caps["tokens_day"])
        refused = self.send("options", act="set", option="max_react_iterations", value="")
        self.assertShows(refused, "not 'None'")

    def test_a_journal_entry_is_corrected(self):
        """The old entry is withdrawn, the new one rests on the same lines."""
        old = self.script.obj.journal.add("Bob owns a cat.", source_message_ids=["m1"])
        shown = self.send("memory", act="correct", id=old.id, text="Bob owns a boat.")
        self.assertShows(shown, "takes the place of")
        new = self.script.obj.journal.recent()[-1]
        self.assertEqual((new.content, new.source_message_ids), ("Bob owns a boat.", ("m1",)))
        self.assertTrue(self.script.obj.journal.get(old.id).withdrawn)
        self.assertEqual(self.logged("corrected")[0]["now"], new.id)

    def test_an_entry_is_forgotten_and_a_player_quarantined(self):
        """Both are done and logged; unknown ids and players are refused in a sentence."""
        old = self.script.obj.journal.add("Bob owns a cat.")
        self.assertShows(self.send("memory", act="forget", id=old.id), "no longer finds")
        self.assertShows(self.send("memory", act="forget", id="e0"), "There is no journal entry")
        create_account("Mallory", "m@example.com", "a-long-password-1")
        self.assertShows(self.send("memory", act="quarantine", player="Mallory"), "uses nothing")
        self.assertShows(self.send("memory", act="release", player="Mallory"), "uses again")
        self.assertShows(self.send("memory", act="dance"), "no such act")
        self.assertTrue(self.logged("quarantine") and self.logged("forget"))

    def test_a_line_is_removed_and_corrected(self):
        """The line's own page takes it back, uses it again, and puts another text there."""
        line, page = self.said("The mayor is Bolko."), "why/{}".format
        shown = self.send(page(line.id), act="remove")
        self.assertShows(shown, "Removed: Bob: “The mayor", "Use this line again")
        self.assertNotIn("Bolko", str(build_llm_messages(self.script, self.aria)))
        self.assertShows(self.client.get(f"/ai/{self.script.pk}/memory/"), f"/why/{line.id}/")
        self.assertShows(self.send("memory", act="release", player=line.id), "Restored: Bob")
        self.send(page(line.id), act="remove")
        self.assertShows(self.send(page(line.id), act="restore"), "Restored")
        shown = self.send(page(line.id), act="correct", text="The mayor is Greta.")
        self.assertShows(shown, "has it as: Bob: “The mayor is Greta.”", ">corrected<", ">removed<")
        self.send("memory", act="release", player=line.id)
        used = str(build_llm_messages(self.script, self.script.obj))
        self.assertEqual(("Bolko" in used, "Greta" in used), (True, False))
        self.assertTrue(self.logged("restored"))
        self.assertShows(self.send(page(line.id), act="dance"), "no such act")
        self.assertTrue(self.logged("removed") and self.logged("corrected"))

    def test_a_refusal_keeps_what_was_typed(self):
        """It stands apart, and what was sent stands on the page, as text."""
        sent = {"act": "set", "option": "max_react_iterations", "value": "<b>many</b>"}
        with override_settings(MESSAGE_TAGS={ERROR: "danger"}):  # as Evennia has it
            shown = self.send("options", **sent)
        self.assertShows(shown, 'role="alert" class="told error"', "Not done.")
        raw = shown.content.decode()
        for name, value in sent.items():
            text = value.replace("<", "&lt;").replace(">", "&gt;")
            hidden = "" if name == "value" else " hidden"  # which nobody typed
            self.assertIn(f'data-name="{name}" dir="auto"{hidden}>{text}</p>', raw)
        self.assertHides(self.client.get(f"/ai/{self.script.pk}/options/"), "many")

    def test_what_nobody_typed(self):
        """It is what the forms hide, and the act of a button; a field that is typed is shown."""
        hidden, typed = set(), set()
        for path in (Path(evennia_ai.__file__).parent / "templates" / "evennia_ai").glob("*.html"):
            for field in re.findall(r"<(?:input|select|textarea) [^>]*>", path.read_text("utf-8")):
                for name in re.findall(r' name="(\w+)"', field):
                    (hidden if 'type="hidden"' in field else typed).add(name)
        uploads = {"file"}  # which no form sends back as text
        self.assertEqual(hidden - (typed - uploads) | {"act"}, UNTYPED)

    def test_what_is_looked_for_is_marked(self):
        """The words as they were typed, or else each of them, in the forms of the language."""
        self.said("Der Kahn liegt im Hafen, <b>nahe</b> der Mole.")
        shown = self.client.get(f"/ai/{self.script.pk}/talk/?q=<b>nahe")
        self.assertIn("<mark>&lt;b&gt;nahe</mark>", shown.content.decode())
        for text, query, hits in (
            ("Blue boats sail.", "where does a boat sail?", ["boats", "sail"]),
            ("Die Kähne und der Hafen", "Wo ist der Hafen und wo ist mein Boot?", ["Hafen"]),
            ("青い船の名前", "船", ["船"]),
            ("A boat", "", []),
        ):
            parts = marked(text, query)
            self.assertEqual("".join(part for part, _ in parts), text)
            self.assertEqual([part for part, is_hit in parts if is_hit], hits)

    def test_the_state(self):
        """Buttons switch it, send it to sleep and take an answer back, for who controls it."""
        self.talk("Aria, who rules?", "The wharfinger.")
        state = f"/ai/{self.script.pk}/"
        for act, told, button in (
            ("stop", "is switched off", "Switch on"),
            ("start", "is switched on", "Switch off"),
            ("sleep", "falls asleep", ">Wake<"),
            ("wake", "wakes up", "Send to sleep"),
            ("undo", "Taken back: “The wharfinger.”", "Compact the history"),
            ("undo", "no answer that is still", "Compact the history"),
            ("compact", "begins to compact", "Compact the history"),
            ("dance", "no such act", "Compact the history"),
        ):
            self.assertShows(self.client.post(state, {"act": act}, follow=True), told, button)
        self.be("Builder")
        self.assertHides(self.client.get(state), "Switch off", "Compact the history")
        shown = self.client.post(state, {"act": "stop"}, follow=True)
        self.assertShows(shown, "You may not change")
        self.aria.locks.add("control:all()")
        self.assertHides(self.client.get(state), "Compact the history")
        self.assertShows(self.client.post(state, {"act": "compact"}, follow=True), "no such act")

    def test_a_memory_is_found_and_forgotten(self):
        """Words find entries with scores, and an entry is forgotten together with its memory."""
        entry = self.script.obj.journal.add("Bob owns a green boat.")
        memories, scope = self.script.mind.memories, self.script.scope
        wait_for(memories.add(scope, [entry.turn]))
        shown = self.client.get(f"/ai/{self.script.pk}/search/?q=green+boat")
        self.assertShows(shown, "score", "journal", f'name="id" value="{entry.id}"')
        shown = self.send("search", act="forget", id=entry.id)
        self.assertShows(shown, f"no longer finds journal entry {entry.id}")
        self.assertEqual(wait_for(memories.ids(scope)), set())
        self.assertTrue(self.script.obj.journal.get(entry.id).withdrawn)


@override_settings(ROOT_URLCONF="tests.web.urls")
class TestMetrics(AssistantTest):
    """Off until a token is set; then for whoever has it."""

    def fetch(self, **headers):
        return Client().get("/ai/metrics", headers=headers)

    def test_token(self):
        """Without one set there is nothing; a wrong or missing one is refused."""
        self.assertEqual(self.fetch().status_code, 404)
        with override_settings(EVENNIA_AI_METRICS_TOKEN=TOKEN):
            wrong = ("", "Bearer wrong", "Bearer \u00e9", TOKEN, f"bearer {TOKEN}")
            for given in (*wrong, f"Basic {TOKEN}", f"Bearer {TOKEN} ", f"Bearer Bearer {TOKEN}"):
                response = self.fetch(authorization=given)
                self.assertEqual(response.status_code, 403)
                self.assertNotIn(b"Aria", response.content)
            for name in ("token", "Authorization"):  # addresses stand in logs
                answer = Client().get("/ai/metrics", {name: f"Bearer {TOKEN}"})
                self.assertEqual(answer.status_code, 403)

    def test_figures(self):
        """Each assistant has its gauges, in Prometheus' format."""
        with override_settings(EVENNIA_AI_METRICS_TOKEN=TOKEN):
            response = self.fetch(authorization=f"Bearer {TOKEN}")
        self.assertEqual(response.status_code, 200)
        self.assertIn(b'evennia_ai_up{assistant="Aria"} 1.0', response.content)
        self.assertIn(b'evennia_ai_context_usage_ratio{assistant="Aria"}', response.content)
