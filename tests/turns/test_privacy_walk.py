"""Random walks through a game: what was told in private reaches nobody else by any way.

Each private line holds a secret of its own, and the scripted model is as talkative as it can be:
it says, notes and summarises every secret that it is shown, and searches for those it has no
business to know. After each step, no secret may have reached anybody outside its circle.
"""

import random
import re

from evennia import create_account, create_object, search_object

from evennia_ai.errors import AssistantError
from evennia_ai.game.seeing import stable_id
from evennia_ai.history.audience import PUBLIC, STAFF, private, visible
from evennia_ai.llm_interaction.offline.brain import respond
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.recall.values import Query
from evennia_ai.sleep.compaction import compact_conversation_history
from evennia_ai.sleep.compaction.rollback import rollback_compaction
from evennia_ai.testing import call
from tests.base import CHARACTER, PLAYED
from tests.command_line import WholePagesTest
from tests.game.test_stored_privacy import READS
from tests.thoroughness import examples
from tests.waiting import pump_until, wait_for

WALKS, STEPS = examples(20, 2), 40
_SECRET = re.compile(r"zqword\d+kept")  # longer than what an id can hold by chance
# What builders and players may type of ours; the answer to some is a refusal.
OURS = (
    "ai",
    "aistatus Aria",
    "aiconfig Aria",
    "aibudget Aria",
    "ai/why Aria",
    "aihistory Aria",
    "aihistory/raw Aria",
    "aihistory/summaries Aria",
    "aihistory/search Aria = {secret}",
    "aimemory Aria = {secret}",
    "aimemory/facts Aria",
    "aimemory/entities Aria",
    "airemember Aria",
)
EVENNIAS = (*READS, "objects", "scripts", "examine Alice")
EVENNIAS += ("find/loc Aria", "type Aria", "lock Aria")
MORE_WORDS = ("the mill", "my boat", "the old bridge", "a red lantern", "the harvest")


class TestWalks(WholePagesTest):
    """Game evenings of several players, a private room, and all that an assistant does.

    Each is chosen by a seed: everything depends on it.
    """

    def test_secrets_stay_where_they_were_told(self):
        """No request, search, line on a screen or command has a secret of another circle."""
        for seed in range(WALKS):
            with self.subTest(seed=seed):
                self.begin(seed)
                try:
                    self.walk()
                finally:
                    self.replace_everybody()

    def begin(self, seed):
        """Put everybody in place."""
        self.seed, self.rng = seed, random.Random(seed)
        self.owners, self.steps, self.leaks, self.number = {}, [], [], 0
        self.public, self.den = self.room1, self.room2
        self.outside = create_object("evennia.DefaultRoom", key="Outside")
        self.char1.move_to(self.outside, quiet=True, move_hooks=False)
        self.den.tags.add("private", category="evennia_ai")
        self.people = [self._player(name) for name in ("Alice", "Bob", "Cora")]
        self.model.default = self.answer
        self.configure(
            attention="all",
            compact_preserve_window=2,
            compact_preserve_token_share=0.0,
            max_context_tokens=self.rng.choice((6000, 16000)),
            pre_compact_max_iterations=2,
            max_react_iterations=4,
            reply_cooldown_s=0,
            emotes={"thinking": None},
        )

    def replace_everybody(self):
        """The next walk begins with nothing."""
        for each in (*self.people, self.aria):
            each.delete()
        self.aria = create_object(CHARACTER, key="Aria", location=self.room1)
        self.script = self.aria.assistant
        self.script.stop()

    def _player(self, name):
        person = create_object(PLAYED, key=name, location=self.public, home=self.public)
        account = create_account(f"{name}{self.seed}", None, "x7!Gh2qq", is_superuser=False)
        person.account = account
        for screen in (person, account):
            screen.msg = lambda text=None, *_, **__: self.saw(person, text)
        return person

    # -- what must hold ----------------------------------------------------------------------

    def leak(self, what):
        """Note a leak; `walk` raises it, as a turn survives all that is raised in it."""
        self.leaks.append(f"seed {self.seed}, steps {self.steps}: {what}")

    def saw(self, person, text):
        """What a player is shown is for that player."""
        for secret in _SECRET.findall(str(text)):
            if stable_id(person) not in self.owners[secret]:
                self.leak(f"{secret} of {self.owners[secret]} was shown to {person.key}: {text}")

    def known(self, text, audience, what):
        """The secrets in a text, all of which an audience must be allowed to know."""
        found = sorted(set(_SECRET.findall(str(text))))
        for secret in found:
            if not visible(private(self.owners[secret]), audience):
                at = str(text).index(secret)
                where = str(text)[max(0, at - 200) : at + 100]
                self.leak(f"{secret} of {self.owners[secret]} in {what} for {audience}: {where}")
        return found

    def check_searches(self):
        """Nobody finds what was not for them."""
        for secret in self.rng.sample(sorted(self.owners), min(1, len(self.owners))):
            for audience in (PUBLIC, *(private([stable_id(p)]) for p in self.people)):
                query = Query(secret, 9, audience, observations=True, tools=True)
                hits = wait_for(self.script.memory.search(query))
                self.known([hit.text for hit in hits], audience, "a search")

    def check_commands(self):
        """Builders and players read nothing by Evennia's commands, nor by ours."""
        secret = self.rng.choice(sorted(self.owners) or ["zqword0kept"])
        lines = [line.format(secret=secret) for line in OURS]
        # Stands beside Aria, as many commands look for her in the room only.
        self.char1.move_to(self.aria.location, quiet=True, move_hooks=False)
        for rank, typed in (("Builder", (*EVENNIAS, *lines)), ("Player", lines)):
            self.be(rank)
            for line in typed:
                shown = self.typed(line).replace(line, "")
                if found := _SECRET.findall(shown):
                    self.leak(f"{rank} reads {found} by `{line}`")
        for copied in search_object("Clone"):
            copied.delete()
        self.char1.move_to(self.outside, quiet=True, move_hooks=False)

    # -- the model ---------------------------------------------------------------------------

    def answer(self, request):
        """Tell everything that was shown, by any way there is."""
        event = self.script.prompts.events()[-1]
        audience = event.audience
        texts = [str(message.get("content") or "") for message in request.messages]
        calls = [str(message.get("tool_calls") or "") for message in request.messages]
        if request.purpose == "summary":  # the event does not say whose; a later prompt shows it
            secrets = _SECRET.findall(str(texts))
            circles = [set(self.owners[secret]) for secret in secrets]
            audience = private(set.intersection(*circles)) if circles else PUBLIC
            if audience == STAFF:
                self.leak(f"a summary mixes {secrets}")
        known = self.known([texts, calls], audience, f"a request ({request.purpose})")
        if request.model == OFFLINE_MODEL:
            return respond(request.messages).content or ""
        self.number += 1
        told = f"Number {self.number}: {' '.join(known[-6:])} of {self.rng.choice(MORE_WORDS)}."
        if request.purpose == "summary":
            return f"They spoke of {' and '.join(known) or 'little'}."
        notes = (
            call("add_journal_entry", content=f"Alice owns {told}"),
            call("update_entity_observation", entity="Alice", observation=f"Alice owns {told}"),
            call("noop"),
        )
        if request.purpose != "awake":
            return self.rng.choice(notes)
        return self.rng.choice(
            (
                told,
                told,
                call("say", text=told),
                call("emote", text=f"mutters {told}"),
                call("whisper", target=self.rng.choice(self.people).key, text=told),
                call("propose_ledger_entry", text=f"Alice likes {told}"),
                call("search_memory", query=f"{self.rng.choice(MORE_WORDS)} holds, tell"),
                call("expand_memory", id=self._some_id()),
                call("trace_summaries"),
                call("context_snapshot"),
                *notes,
            )
        )

    def _some_id(self):
        """The id of anything stored, whoever may know it."""
        ids = [message.id for message in self.script.history.messages()]
        ids += [entry.id for entry in self.aria.journal.recent(50)]
        ids += [record.id for record in self.script.history.summaries()]
        return self.rng.choice(ids or ["m0"])

    # -- the steps ---------------------------------------------------------------------------

    def walk(self):
        """All steps, and what must hold after each."""
        every = ("say", "whisper", "whisper", "page", "pose", "hush", "tick", "tick", "tick")
        every += ("move", "follow", "rename", "roll_back", "reload", "note")
        every += ("compact", "sleep") * 2
        for count in range(STEPS):
            self.steps.append(self.rng.choice(every))
            getattr(self, f"_{self.steps[-1]}")()
            self._settle()
            self.check_searches()
            if count in (STEPS // 2, STEPS - 1):
                self.check_commands()
            self.assertEqual(self.leaks, [])

    def _settle(self):
        pump_until(lambda: self.script.runtime.lock.running is None)

    def _line(self, circle=None):
        """Something to say; a secret where it is for a circle."""
        words = self.rng.choice(MORE_WORDS)
        if circle is None:
            return f"Aria, what of {words}?"
        secret = f"zqword{len(self.owners)}kept"
        self.owners[secret] = {stable_id(person) for person in circle} - {stable_id(self.aria)}
        return f"Aria, {words} holds {secret}, tell nobody."

    def _aloud(self, person):
        """What somebody says in the open: in the den it is for those who are there."""
        is_den = person.location is self.den
        return self._line(self._beside(person) if is_den else None)

    def _beside(self, person):
        return [obj for obj in person.location.contents if obj in self.people or obj is person]

    def _say(self):
        person = self.rng.choice(self.people)
        person.at_say(self._aloud(person), msg_self=True)

    def _pose(self):
        person = self.rng.choice(self.people)
        line = f"{person.key} mutters: {self._aloud(person)}"
        person.location.msg_contents(text=(line, {"type": "pose"}), from_obj=person)

    def _hush(self):
        """A player and Aria talk in the den; another may come in before she answers."""
        person, other = self.rng.sample(self.people, 2)
        person.move_to(self.den, quiet=True)
        self.aria.move_to(self.den, quiet=True)
        person.at_say(self._aloud(person), msg_self=True)
        if self.rng.random() < 0.5:
            other.move_to(self.den)

    def _whisper(self):
        person = self.rng.choice(self.people)
        if person.location is not self.aria.location:
            return
        others = [each for each in self._beside(person) if each is not person]
        circle = self.rng.sample(others, self.rng.randrange(min(2, len(others) + 1)))
        # As Evennia's command `whisper` does it, so that the parties know of each other.
        line = self._line([person, *circle])
        names = ",".join(each.key for each in (self.aria, *circle))
        person.execute_cmd(f"whisper {names} = {line}")

    def _page(self):
        person = self.rng.choice(self.people)
        self.aria.hear_page(person.account, self._line([person]), person)

    def _tick(self):
        self.script.runtime.last_turn_at = 0.0
        wait_for(self.script.at_tick())

    def _move(self):
        person = self.rng.choice(self.people)
        person.move_to(self.rng.choice((self.public, self.den)))

    def _follow(self):
        self.aria.move_to(self.rng.choice((self.public, self.den)), quiet=True)

    def _rename(self):
        """Two players exchange their names."""
        one, other = self.rng.sample(self.people, 2)
        one.key, other.key = other.key, one.key

    def _note(self):
        self.rng.choice(self.people).execute_cmd(f"airemember Aria = I like {self._line()}")

    def _exclusively(self, function, **options):
        """Run something under the turn lock; what is refused does no harm."""
        done = self.script.run_exclusive(lambda: function(self.script, self.aria, **options))
        try:
            return wait_for(done)
        except AssistantError:
            return None

    def _compact(self):
        self._exclusively(compact_conversation_history, force=True)

    def _roll_back(self):
        self._exclusively(lambda script, _: rollback_compaction(script))

    def _sleep(self):
        self.script.fall_asleep()
        self._settle()
        self._tick()
        if self.script.state.mode == "sleep":
            self.script.wake()

    def _reload(self):
        self.script.at_server_reload()
        self.restart()
