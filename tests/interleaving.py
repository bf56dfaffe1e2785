"""Random interleavings of all that happens to a history, against a record of their own.

The record is a plain list to which the driver adds what it gave to the assistant. After each
step what is stored must equal it, byte for byte, each message once, in order. See
`tests/sleep/test_interleavings.py`.
"""

import json
import random
import re
from collections import Counter
from dataclasses import replace

from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.python.failure import Failure

from evennia_ai.errors import AssistantError
from evennia_ai.history.archive import ARCHIVE
from evennia_ai.history.audience import PUBLIC, private, visible
from evennia_ai.history.live import HISTORY, HistoryHandler
from evennia_ai.history.messages import Message, new_id, utc_iso
from evennia_ai.history.messages import Speaker as Person
from evennia_ai.llm_interaction.contexts import SUMMARY_MARK
from evennia_ai.llm_interaction.offline.brain import respond
from evennia_ai.llm_interaction.prompt import (
    OFFLINE_MODEL,
    build_prompt,
)
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.sleep.compaction import compact_conversation_history, run_pre_compaction_extraction
from evennia_ai.sleep.compaction.behind import begin_behind
from evennia_ai.sleep.compaction.rollback import rollback_compaction
from evennia_ai.testing import call
from tests.asked import model_down
from tests.loopback import check_pairs
from tests.memory_assistant import PEOPLE, StoreFailure, extract_and_compact
from tests.models import ScriptedModel
from tests.steps import COMMIT_STEPS, ROLLBACK_STEPS, verify_history
from tests.waiting import pump_until

PAIR = private([PEOPLE["Alice"], PEOPLE["Bob"]])
AUDIENCES = (PUBLIC, *(private([each]) for each in PEOPLE.values()), PAIR)
ODD = ("", "{braces} |lc|n", 'said: "no"\nBob [o2.b] says: "yes"', "漢字 🜁\u2028", "7,500 crowns")
FIELDS = ("role", "content", "speaker", "tool_calls", "tool_call_id", "name", "audience", "channel")
_SECRET = re.compile(r"SECRET-(\d)-\d+")
_LINE = re.compile(r"\bw(\d+) ")
# What asks a model for no turn: each request holds the lines of one audience.
JOBS = ("summary", "pre_compaction")
# Of the pauses between two steps of work, so many last until the next answer.
BREATHS_HELD = 0.2
# Call ids are few, so that they repeat.
CALL_IDS = ("c1", "c2", "c3", "c4")


class Injected(Exception):
    """A failure at a step of a commit or a rollback."""


class Broken(AssertionError):
    """What must hold does not; the message names the seed and the steps so far."""


def raw_bytes(message, given=None):
    """What must never change of a message, as canonical JSON; what `given` says wins."""
    message = message.to_dict()
    source = {**message, **{k: v for k, v in (given.to_dict() if given else {}).items() if v}}
    kept = {name: source.get(name) for name in FIELDS if source.get(name) is not None}
    kept["created_at"] = message["created_at"]
    return json.dumps(kept, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")


class Talk:
    """Makes lines, replies and tool traffic from a random source; each line is unique."""

    def __init__(self, rng):
        self.rng, self.number = rng, 0
        self.audiences = {}

    def line(self, audience):
        """A text that names its audience by a secret where it is private."""
        self.number += 1
        self.audiences[str(self.number)] = audience
        words = self.rng.choice(("Mirabel hid", "the mill owes", "north of Saltmarsh", "barrel"))
        text = f"w{self.number} {words} {self.rng.choice(ODD)} {self.rng.randrange(1000)}"
        text += " and on it went" * self.rng.randrange(6)
        if self.rng.random() < 0.05:
            text += " timber" * self.rng.randrange(200, 1500)
        if audience != PUBLIC:
            text += f" SECRET-{AUDIENCES.index(audience)}-{self.number}"
        return text

    def event(self, at):
        """A heard line."""
        audience = self.rng.choice((*(PUBLIC,) * 6, *AUDIENCES[1:]))
        key = self.rng.choice(list(PEOPLE))
        channel = "say" if audience in (PUBLIC, PAIR) else self.rng.choice(("whisper", "page"))
        return Message(
            "user",
            self.line(audience),
            id=new_id("m"),
            channel=channel,
            audience=audience,
            speaker=Person(key=key, id=PEOPLE[key]),
            created_at=utc_iso(at),
            metadata={"assistant": False},
        )

    def calls(self, count, names):
        """Tool calls with ids that repeat from turn to turn."""
        ids = self.rng.sample(CALL_IDS, count)
        made = []
        for call_id in ids:
            name, arguments = self.rng.choice(names)
            made.append({**call(name, **arguments)[0], "id": call_id})
        return made

    def exchange(self):
        """Calls and results as a game's own code may store them: late, missing, doubled."""
        audience = self.rng.choice(AUDIENCES)
        made = self.calls(self.rng.randrange(1, 4), [("look", {}), ("search_memory", {})])
        ids = [one["id"] for one in made]
        answered = ids[: self.rng.randrange(len(ids) + 1)]
        self.rng.shuffle(answered)
        if self.rng.random() < 0.1:
            answered.append(self.rng.choice(CALL_IDS))
        results = [self._result(each) for each in answered]
        if self.rng.random() < 0.2:
            results.insert(0, Message("user", self.line(audience)))
        said = Message("assistant", "", tool_calls=tuple(made))
        return [replace(message, audience=audience) for message in (said, *results)]

    def _result(self, call_id):
        words = self.rng.choice((1, 20, 400, 3000))
        return Message("tool", "oak " * words, tool_call_id=call_id, name="look")


class Speaker:
    """The scripted model: every purpose has good and bad answers."""

    def __init__(self, rng, talk):
        self.rng, self.talk = rng, talk
        self.seen = []

    def __call__(self, request):
        texts = [str(m.get("content") or "") for m in request.messages]
        self.seen.append((request.purpose, "\n".join(texts)))
        if request.model == OFFLINE_MODEL:
            return respond(request.messages).content or ""
        if request.purpose == "summary":
            return self._summary(texts[-1])
        if request.purpose == "pre_compaction":
            return self._extraction("\n".join(texts))
        return self._reply()

    def _summary(self, text):
        kept = " ".join(sorted(set(re.findall(r"SECRET-\S+|\b[A-Z][a-z]+\b|\d+", text)))[:40])
        answers = (
            f"They talked of {kept}.",
            f"They talked of {kept}.",
            "They talked.",
            "I'm sorry, but I can't help with that.",
            "",
            "word " * 3000,
            call("noop"),
            model_down(),
        )
        return self.rng.choice(answers)

    def _extraction(self, text):
        secrets = re.findall(r"SECRET-\S+", text)
        fact = f"Fact {self.rng.randrange(99)} {self.rng.choice(secrets) if secrets else ''}"
        cited = {"lines": self.rng.sample(range(1, 9), 2)} if self.rng.random() < 0.5 else {}
        answers = (
            call("add_journal_entry", content=fact, **cited),
            call("add_journal_entry", content=fact, **cited) + call("noop"),
            call("update_entity_observation", entity="Alice", observation=fact, **cited),
            call("noop"),
            call("say", text="I am not to speak."),
            "Nothing more.",
            f"{SUMMARY_MARK} They talked of {' '.join(secrets[:9])}.",
            model_down(),
        )
        return self.rng.choice(answers)

    def _reply(self):
        self.talk.number += 1
        known = [
            ("look", {}),
            ("search_memory", {"query": "barrel mill"}),
            ("add_journal_entry", {"content": f"Noted {self.talk.number}."}),
            ("launch_rocket", {}),
            ("look", {"target": 3, "odd": 1}),
        ]
        count = self.rng.randrange(1, 4)
        answers = (
            f"Reply {self.talk.number} to that.",
            f"Reply {self.talk.number}, {self.rng.choice(ODD)}",
            self.talk.calls(count, known),
            self.talk.calls(count, known),
            call("noop"),
            "",
            model_down(),
        )
        return self.rng.choice(answers)


class Interleaving:
    """One run: steps chosen at random, the record beside them.

    Args:
        world: A world as `tests.memory_assistant.MemoryWorld`.
        seed: What is chosen depends on it alone.
        disk: Whether writes may fail at any place, not just at named steps.
    """

    def __init__(self, world, seed, disk=True):
        self.world, self.seed = world, seed
        self.rng = random.Random(seed)
        self.talk = Talk(self.rng)
        self.model = Speaker(self.rng, self.talk)
        world.model.default = self.model
        world.breathe = self._breathe
        self.record, self.told, self.loose = [], {}, set()
        self.slow = []
        self.steps, self.counts = [], Counter()
        self.pending = None
        self.disk = disk
        self._configure()
        self._watch()

    # -- the steps ---------------------------------------------------------------------------

    def run(self, length):
        """So many steps, then everything taken back; checks after each."""
        for _ in range(length):
            free = ("hear", "hear", "edit", "checkpoint", "release", "release", "crash", "behind")
            every = (
                *("hear",) * 6,
                *("tick", "chat") * 4,
                *("exchange",) * 2,
                *("compact",) * 3,
                *("extract_and_compact", "automatic") * 2,
                "extract",
                *("roll_back",) * 2,
                *("behind",) * 10,
                *("emergency", "emergency", "take_over"),
                *("edit", "reload", "crash", "sleep", "switch", "slow", "checkpoint"),
                *("fail",) * 3,
            )
            self.step(self.rng.choice(free if self.pending is not None else every))
        self.step("release")
        self.step("take_over")
        for record in self.world.script.history.compactions():
            self.counts[f"committed: {record.trigger}"] += 1
        for _ in range(30):
            if not self.step("roll_back"):
                break
        self.step("switched_off")
        return self.counts

    def step(self, name):
        """Take one step and check all that must hold."""
        self.steps.append(name)
        self.counts[name] += 1
        self.world.later(self.rng.choice((0.0, 1.5, 40.0)))
        try:
            result = getattr(self, f"_{name}")()
            self.check()
        except Broken:
            raise
        except Exception as error:
            raise Broken(f"seed {self.seed}, steps {self.steps}: {error!r}") from error
        return result

    def _breathe(self):
        """Between two steps of long work others may come in, while the model's answers are held."""
        waiting = Deferred()
        if self.world.model.held and self.rng.random() < BREATHS_HELD:
            self.world.model._waiting.append((waiting, succeed(None)))
        else:
            waiting.callback(None)
        return waiting

    def _hear(self):
        for _ in range(self.rng.randrange(1, 4)):
            event = self.talk.event(self.world.script.now())
            self.told[event.id] = raw_bytes(replace(event, role="user"))
            self.world.script.runtime.hear(event, self.world.script.now())

    def _tick(self):
        script = self.world.script
        script.runtime.last_turn_at = 0.0
        return self._do_turn(lambda tick: tick.tick())

    def _chat(self):
        """So many lines of one audience that a summary of them may be worth it."""
        audience = self.rng.choice((PUBLIC, PUBLIC, *AUDIENCES[1:]))
        lines = [self.talk.line(audience) for _ in range(self.rng.choice((4, 8, 12)))]
        said = [Message("user", line, audience=audience, channel="say") for line in lines]
        self._do(self.world.script.history.append, said)

    def _exchange(self):
        self._do(self.world.script.history.append, self.talk.exchange())

    def _compact(self):
        hint = self.rng.choice((None, "Heed names."))
        return self._do_alone(compact_conversation_history, force=True, instructions=hint)

    def _extract_and_compact(self):
        return self._do_alone(lambda script, _: extract_and_compact(script))

    def _extract(self):
        return self._do_alone(run_pre_compaction_extraction, max_iterations=2)

    def _automatic(self):
        threshold = self.rng.choice((0.01, 0.3, 0.7))

        def compact(script, body):
            self.world.configure(compact_sleep_threshold=threshold)
            return compact_conversation_history(script, body)

        return self._do_alone(compact)

    def _do_alone(self, function, **options):
        """Run something under the turn lock, which stops a compaction in the background."""
        script, body = self.world.script, self.world.body
        return self._do(script.run_exclusive, lambda: function(script, body, **options))

    def _do_turn(self, function):
        """Run something under the turn lock as a tick does, beside one."""
        script = self.world.script
        return self._do(script.runtime.lock.run_next, lambda: function(script))

    def _behind(self):
        """A compaction in the background begins, or goes on to its end."""
        script = self.world.script
        if script.runtime.summaries.running is not None:
            self._go_on()
            return None
        if self.pending is not None:
            return None
        self._lower(is_full=self.rng.random() < 0.5)
        self.world.model.held = self.rng.random() < 0.8
        begun = begin_behind(script)
        self.world.model.held = False
        if begun and script.runtime.summaries.running is not None:
            self.slow, self.world.model._waiting = self.world.model._waiting, []
            self.counts["behind begun"] += 1
        self._raise()
        return begun

    def _lower(self, is_full=True):
        """Let the automatic triggers fire at the usage there is now; if full, an emergency's."""
        self.world.script.state.hold = False
        self.world.script.runtime.summaries.waits = (0, 0.0)
        share = max(0.02, min(0.98, self.world.script.usage()))
        awake = share if is_full else 0.99
        self.world.configure(compact_sleep_threshold=share * 0.9, compact_emergency_threshold=awake)

    def _raise(self):
        self.world.configure(compact_sleep_threshold=0.7, compact_emergency_threshold=0.8)

    def _go_on(self):
        """The model in the background answers: its next call waits again, or all is done."""
        model, (slow, self.slow) = self.world.model, (self.slow, [])
        held, waiting, model._waiting = model.held, model._waiting, []
        answering = ScriptedModel()
        answering._waiting = slow
        model.held = self.rng.random() < 0.5
        answering.release()
        self.slow, model._waiting, model.held = model._waiting, waiting, held
        self.counts["behind done"] += self.world.script.runtime.summaries.running is None

    def _emergency(self):
        """Nearly full: a compaction begins at once in the background."""
        self._lower()
        done = self._do_turn(lambda tick: tick.check_emergency())
        self._raise()
        return done

    def _take_over(self):
        """Something else takes the turn lock."""
        return self._do(self.world.script.run_exclusive, lambda: None)

    def _roll_back(self):
        if self.pending is not None:
            return None
        return self._do_alone(lambda script, _: rollback_compaction(script))

    def _sleep(self):
        script = self.world.script
        if script.state.mode == "awake":
            self._do(script.fall_asleep)
            if self.pending is None:
                self._tick()
        else:
            self._do(script.wake)

    def _switch(self):
        choices = {
            "compact_enabled": (True, True, True, False),
            "compact_preserve_window": (2, 5, 8),
            "pre_compact_extraction_enabled": (True, True, False),
        }
        name = self.rng.choice(list(choices))
        self.world.configure(**{name: self.rng.choice(choices[name])})

    def _slow(self):
        """The next model call waits; other things happen meanwhile."""
        self.world.model.held = True
        deeds = (self._tick, self._compact, self._extract, self._extract_and_compact)
        self.rng.choice((*deeds, self._automatic))()
        if self.pending is None:
            self.world.model.held = False

    def _release(self):
        self.world.model.release()
        if self.pending is not None:
            self._settle()

    def _fail(self):
        """Something fails in the middle of the next deed."""
        steps = (*COMMIT_STEPS, *ROLLBACK_STEPS, "done")
        wanted = self.rng.choice(steps)
        if self.disk and self.rng.random() < 0.5:
            self.world.storage.disk.fail_in(self.rng.randrange(1, 40))
        else:

            def fail_at(name):
                if name == wanted:
                    raise Injected(name)

            self.world.script.at_commit_step = fail_at
        deeds = (self._compact, self._extract_and_compact, self._automatic, self._roll_back)
        self.rng.choice((*deeds, self._extract, self._tick, self._exchange))()
        self.world.script.__dict__.pop("at_commit_step", None)
        if self.disk:
            self.world.storage.disk.left = None

    def _edit(self):
        """A builder puts messages in by hand; where a compaction runs, at the end."""
        stored = self.world.attribute(HISTORY) or []
        texts = [self.talk.line(PUBLIC) for _ in range(self.rng.randrange(1, 3))]
        new = [{"role": self.rng.choice(("user", "assistant")), "content": t} for t in texts]
        first = sum(Message.from_dict(m).is_summary for m in stored)
        raw = {each for each, _ in self.record}
        waits = self.pending is not None or self.world.script.runtime.summaries.running is not None
        at = len(stored) if waits else self.rng.randrange(first, len(stored) + 1)
        self.world.write(HISTORY, [*stored[:at], *new, *stored[at:]])
        self._take_in(new, stored[at - 1]["id"] if at > first else None)
        if waits:
            # Among lines that a compaction in flight may take away, they have no place to keep.
            self.loose |= {each for each, _ in self.record if each not in raw}

    def _take_in(self, new, behind):
        """Note edited messages in the record, where they stand."""
        live = self.world.script.history.messages()
        known = {each for each, _ in self.record}
        found = [m for m in live if not m.is_summary and m.id not in known]
        contents = [m.content for m in found]
        assert contents == [m["content"] for m in new], (contents, new)
        ids = [each for each, _ in self.record]
        if behind in ids:
            place = ids.index(behind) + 1
        else:
            lives = [m.id for m in live if m.id in known]
            place = ids.index(lives[0]) if lives else len(ids)
        given = map(Message.from_dict, new)
        entries = [(m.id, raw_bytes(m, one)) for m, one in zip(found, given, strict=True)]
        if set(ids[place:]) - {m.id for m in live}:
            # Between old lines that stayed: what left from there has no place to tell.
            self.loose |= {each for each, _ in entries}
        self.record[place:place] = entries

    def _checkpoint(self):
        self.world.script.history.replace(self.world.script.history.messages())

    def _reload(self):
        self.world.script.save_queue()
        self._checkpoint()
        self._restart()

    def _crash(self):
        """Everything in memory is gone, a deed in flight and unsaved events too."""
        saved = {event.id for event in self.world.script.state.load_queue()}
        stored = {each for each, _ in self.record}
        self.told = {k: v for k, v in self.told.items() if k in saved | stored}
        self._restart()

    def _restart(self):
        self.pending, self.slow = None, []
        self.world.model.held = False
        self.world.model._waiting.clear()  # a deed in flight dies with its process
        self.world.restart(self._watch)

    # -- doing -------------------------------------------------------------------------------

    def _configure(self):
        rng = self.rng
        self.world.configure(
            compact_preserve_window=rng.choice((2, 4, 8)),
            max_context_tokens=rng.choice((5000, 8000, 16000)),
            compact_preserve_token_share=rng.choice((0.0, 0.2)),
            summary_max_tokens=rng.choice((120, 300)),
            pre_compact_max_iterations=2,
            max_react_iterations=4,
            reply_cooldown_s=0,
        )

    def _watch(self):
        """Note what is appended from now on, as it was given."""
        history = self.world.script.history
        inner = history.append

        def append(messages):
            given = list(messages)
            stored = inner(given)
            new = [(kept.id, raw_bytes(kept, one)) for one, kept in zip(given, stored, strict=True)]
            history.store.on_commit(lambda: self.record.extend(new))
            return stored

        history.append = append

    def _do(self, function, *args, **options):
        """Run something; True if it succeeded, None while it waits, False if it was refused."""
        self.pending = self.outcome = None
        outcome = []
        running = maybeDeferred(function, *args, **options)
        running.addBoth(outcome.append)
        self.pending = outcome
        if self.world.model.held and not outcome:
            return None
        return self._settle()

    def _settle(self):
        outcome = self.pending
        pump_until(lambda: outcome or self.world.model._waiting)
        if not outcome:
            return None
        self.pending = None
        failure = outcome[0]
        if not isinstance(failure, Failure):
            self._note(failure)
            return True
        kind = failure.trap(Injected, StoreFailure, AssistantError)
        self.counts["refusals" if kind is AssistantError else "injected failures"] += 1
        return False

    def _note(self, result):
        if isinstance(result, dict):
            if result.get("compacted_messages") or result.get("masked_messages"):
                self.counts["compactions done"] += 1
            if "restored_messages" in result:
                self.counts["rollbacks done"] += 1

    # -- what must hold ----------------------------------------------------------------------

    def check(self):
        """All that must hold after each step."""
        script = self.world.script
        self._check_places(script)
        if self.world.model.held or self.pending is not None:
            return
        violations = verify_history(script)
        assert not violations, violations
        self._check_prompts(script)
        self._check_requests()
        self._check_derived(script)

    def _check_places(self, script):
        fresh = HistoryHandler(script.history.store, script.history._counter)
        live = [m for m in fresh.messages() if not m.is_summary]
        cached = [m for m in script.history.messages() if not m.is_summary]
        assert live == cached, "a handler's cache differs from what is stored"
        restored = fresh.restored_segments()
        segments = [s for s in fresh.segments() if s.id not in restored]
        archived = [m for s in segments for m in s.messages]
        self._check_bytes([*live, *archived])
        self._check_order(live, segments)
        self._check_queue(script)

    def _check_bytes(self, messages):
        found = Counter(m.id for m in messages)
        doubled = [each for each, times in found.items() if times > 1]
        assert not doubled, f"doubled: {doubled}"
        known = dict(self.record)
        assert set(found) == set(known), (
            f"lost: {set(known) - set(found)}, unknown: {set(found) - set(known)}"
        )
        for message in messages:
            assert raw_bytes(message) == known[message.id], f"changed: {message.id}"

    def _check_order(self, live, segments):
        place = {each: n for n, (each, _) in enumerate(self.record)}
        for messages in (live, *(s.messages for s in segments)):
            places = [place[m.id] for m in messages if m.id not in self.loose]
            assert places == sorted(places), f"out of order: {[m.id for m in messages]}"
        gone = [m for s in segments for m in s.messages if m.id not in self.loose]
        here = [m for m in live if m.id not in self.loose]
        for audience in {m.audience for m in gone}:
            newest = max(place[m.id] for m in gone if m.audience == audience)
            older = [m.id for m in here if m.audience == audience and place[m.id] < newest]
            assert not older, f"left behind by what is archived: {older}"

    def _check_queue(self, script):
        queued = Counter(event.id for event in script.runtime.queue)
        stored = {each for each, _ in self.record}
        for each, bytes_told in self.told.items():
            times = queued[each] + (each in stored)
            assert times == 1, f"event {each} is there {times} times"
            if each in stored:
                assert dict(self.record)[each] == bytes_told, f"event {each} was changed"

    def _check_prompts(self, script):
        for audience in AUDIENCES[:4]:
            prompt = build_prompt(script, TurnRequest(audience))
            assert prompt.fits, f"prompt for {audience} is too large: {prompt.budget}"
            assert prompt.budget.total <= script.limits().tokens
            check_pairs({"messages": prompt.messages})
            shown = json.dumps(prompt.messages, ensure_ascii=False)
            for number in _SECRET.findall(shown):
                owner = AUDIENCES[int(number)]
                assert visible(owner, audience), f"words of {owner} in a prompt for {audience}"

    def _check_requests(self):
        """No request holds words of two circles that nobody may hear together, no job of two."""
        for purpose, text in self.model.seen:
            owners = {AUDIENCES[int(number)] for number in _SECRET.findall(text)}
            fit = any(all(visible(o, viewer) for o in owners) for viewer in AUDIENCES)
            assert fit, f"a request ({purpose}) mixes {owners}"
            lines = {self.talk.audiences[number] for number in _LINE.findall(text)}
            assert purpose not in JOBS or len(lines | owners) <= 1, (purpose, lines, owners)
        self.model.seen.clear()

    def _check_derived(self, script):
        """Index and semantic memory hold nothing that is not, or no longer, there."""
        journal = {e.id: e for e in self.world.body.journal.recent(5000)}
        known = {each for each, _ in self.record}
        summaries = {r.id: r for r in script.history.summaries()}
        for each in self.world.indexed():
            entry = journal.get(each)
            assert each in known or entry, f"the index holds {each}, which is nowhere"
            assert not (entry and entry.withdrawn), f"the index holds {each}, withdrawn"
        self._check_labels(script, journal.values(), summaries.values())
        for turn in self.world.memories():
            entry = journal.get(turn.id)
            assert entry, f"semantic memory holds {turn.id}, which is nowhere"
            assert not entry.withdrawn, f"semantic memory holds {turn.id}, withdrawn"

    def _check_labels(self, script, journal, summaries):
        """What is derived from a circle's words is labelled for that circle or a narrower one."""
        items = [
            *(m.to_dict() for m in script.history.messages()),
            *(entry.to_dict() for entry in journal),
            *(record.to_dict() for record in summaries),
            *(
                o.to_dict()
                for p in self.world.body.entities.profiles().values()
                for o in p.observations
            ),
            *({"audience": turn.audience, "text": turn.text} for turn in self.world.memories()),
        ]
        for item in items:
            text = json.dumps({k: item.get(k) for k in ("content", "text", "lost")}, default=str)
            for number in _SECRET.findall(text):
                owner, label = AUDIENCES[int(number)], item.get("audience") or PUBLIC
                assert visible(owner, label), f"words of {owner} under the label {label}: {item}"

    def _switched_off(self):
        """Switched off, the raw history is the record."""
        script = self.world.script
        history = script.history
        for audience in AUDIENCES[:4]:
            raw = [m for m in history.messages() if not m.is_summary]
            live = [m for m in raw if visible(m.audience, audience)]
            shown = history.raw_back(audience, 10**9, live)[0]
            known = {m.id for m in shown}
            wanted = [
                each
                for each, stored in self.record
                if visible(json.loads(stored)["audience"], audience)
            ]
            assert known == set(wanted), (len(known), len(wanted))
            order = [m.id for m in shown if m.id not in self.loose]
            kept = [each for each in wanted if each not in self.loose]
            assert order == kept, f"the raw history is out of order: {order} for {kept}"
        assert set(script.history.store.keys(ARCHIVE)) >= set(history.restored_segments())
