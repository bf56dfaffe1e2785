"""What an assistant hears of a game that speaks in its own way: who, on what channel, for whom."""

from functools import partial
from unittest.mock import patch

from django.test import override_settings
from evennia import DefaultCharacter, DefaultRoom, create_object
from evennia.contrib.grid.extended_room import ExtendedRoom
from evennia.utils.create import create_channel
from evennia.utils.utils import inherits_from, make_iter
from twisted.internet.task import Clock

import evennia_ai
from evennia_ai.game.hearing import is_ignored
from evennia_ai.game.seeing import stable_id
from evennia_ai.history.audience import PUBLIC, STAFF, private
from tests.base import AssistantTest, command

PLAYED = "tests.base.PlayedCharacter"


@command
def Say(self):
    """A say of a game's own: plain text, no type."""
    room = self.caller.location
    room.msg_contents(f"{self.caller.key} sagt: „{self.args}“", from_obj=self.caller)


@command
def Unmarked(self):
    """Without a sender, and without quotation marks."""
    for obj in self.caller.location.contents:
        if obj is not self.caller:
            obj.msg(f"{self.caller.key} says {self.args}")


@command
def Listed(self):
    """To a list of everybody here."""
    others = [obj for obj in self.caller.location.contents if obj is not self.caller]
    for obj in others:
        obj.msg((f"{self.caller.key} 说：「{self.args}」",), from_obj=self.caller)


@command
def Whisper(self):
    """A whisper of a game's own, tagged as speech."""
    names, _, words = self.args.partition("=")
    targets = [self.caller.search(name.strip()) for name in names.split(",")]
    for target in targets:
        target.msg((f'{self.caller.key} says, "{words}"', {"type": "say"}), self.caller)


@command
def Murmur(self):
    """Without a sender, type or list."""
    name, _, words = self.args.partition("=")
    self.caller.search(name).msg(f"{self.caller.key} murmurs to you: {words}")


@command
def Aside(self):
    """By leaving everybody else out."""
    name, _, words = self.args.partition("=")
    target, room = self.caller.search(name), self.caller.location
    others = [obj for obj in room.contents if obj is not target]
    room.msg_contents((f"{self.caller.key}: {words}", {"type": "say"}), others, self.caller)


@command
def Between(self):
    """By leaving out all but the two."""
    name, _, words = self.args.partition("=")
    target, room = self.caller.search(name), self.caller.location
    others = [obj for obj in room.contents if obj not in (target, self.caller)]
    room.msg_contents(f'{self.caller.key} says, "{words}"', exclude=others)


def is_meant(obj, name):
    return obj.key.lower().startswith(name.lower())


@command
def Matched(self):
    """By a loop that picks one with a function of its own."""
    name, _, words = self.args.partition("=")
    for obj in self.caller.location.contents:
        if is_meant(obj, name):
            obj.msg(f"{self.caller.key} murmurs to you: {words}", from_obj=self.caller)


@command
def Apart(self):
    """By leaving out all whose name is another one."""
    name, _, words = self.args.partition("=")
    others, room = [], self.caller.location
    for obj in room.contents:
        if obj.key != name:
            others.append(obj)
    room.msg_contents((f"{self.caller.key}: {words}", {"type": "say"}), others, self.caller)


@command
def Picked(self):
    """By a loop over all that is there, of which one is picked."""
    name, _, words = self.args.partition("=")
    for obj in self.caller.location.contents:
        if obj.key == name:
            obj.msg(f"{self.caller.key} murmurs to you: {words}", from_obj=self.caller)


@command
def Sifted(self):
    """To a list of those named, of all that is there."""
    _, _, words = self.args.partition("=")
    people = [obj for obj in self.caller.location.contents if obj.key in self.args]
    for obj in people:
        obj.msg((f'{self.caller.key} says, "{words}"', {"type": "say"}), self.caller)


@command
def Compared(self):
    """By a loop that compares with a target."""
    parts, room = self.args.split("="), self.caller.location
    self.target = target = next(filter(lambda obj: obj.key == parts[0], room.contents))
    for obj in room.contents:
        if obj == target:
            obj.msg(f"{self.caller.key} murmurs: {parts[1]}", from_obj=self.caller)


@command
def Inline(self):
    """By a loop that compares with a part of what was typed."""
    for obj in self.caller.location.contents:
        if obj.key == self.args.split("=")[0]:
            obj.msg(f"{self.caller.key} tells you: {self.args.split('=')[1]}", self.caller)


@command
def Began(self):
    """By a loop that compares with the beginning of a name."""
    name, words = self.args.lower().split("=")
    for obj in self.caller.location.contents:
        if obj.key.lower().startswith(name):
            obj.msg(f"{self.caller.key} tells you: {words}", self.caller)


@command
def Several(self):
    """By a loop over all, for those of some names."""
    who, words = self.args.split("=")
    names = who.split(",")
    for obj in self.caller.location.contents:
        if obj.key in names:
            obj.msg(f"{self.caller.key} tells you: {words}", self.caller)


ORACLES = ("Aria", "Delphi")


@command
def Pray(self):
    """To one who is always the same, by a constant."""
    for obj in self.caller.location.contents:
        if obj.key == "Aria":
            obj.msg(f"{self.caller.key} prays: {self.args.split('=')[1]}", self.caller)


@command
def PrayToMany(self):
    """To those whom the module names."""
    for obj in self.caller.location.contents:
        if obj.key in ORACLES:
            obj.msg(f"{self.caller.key} prays: {self.args.split('=')[1]}", self.caller)


def of_guild(obj):
    """A test of a game's own."""
    return obj.tags.has("guild")


class ToGuild(Whisper):
    """To those of a guild, which only a tag tells."""

    def func(self):
        """To some of the room, picked in several ways."""
        name, _, words = self.args.partition("=")
        line, room = f'{self.caller.key} says, "{words}"', self.caller.location
        getattr(self, name)(line, room)

    def tag(self, line, room):
        for obj in room.contents:
            if obj.tags.get("guild"):
                obj.msg(line, from_obj=self.caller)

    def attribute(self, line, room):
        for obj in room.contents:
            if obj is self.caller or not obj.db.guild:
                continue
            obj.msg((line, {"type": "say"}), from_obj=self.caller)

    def function(self, line, room):
        for obj in room.contents_get(exclude=self.caller):
            if of_guild(obj):
                obj.msg(line, self.caller)

    def filtered(self, line, room):
        for obj in filter(of_guild, room.contents):
            obj.msg(line, self.caller)

    def generated(self, line, room):
        for obj in (each for each in room.contents if each.tags.has("guild")):
            obj.msg(line, self.caller)

    def comprehended(self, line, room):
        [obj.msg(line, self.caller) for obj in room.contents if obj.tags.has("guild")]

    def captured(self, line, room):
        for obj in room.contents:
            if obj.tags.has("guild"):
                (lambda: obj)().msg(line, self.caller)

    def called(self, line, room):
        def tell(obj, **kwargs):
            if obj.tags.has("guild"):
                obj.msg(line, self.caller)

        room.for_contents(tell)

    def locked(self, line, room):
        for obj in room.contents:
            if self.caller != obj and obj.access(
                self.caller, "guild", default=obj.tags.has("guild")
            ):
                obj.msg(line, self.caller)


@command
def SayToKinds(self):
    """To everything of a kind."""
    for obj in self.caller.location.contents:
        if obj == self.caller or not isinstance(obj, DefaultCharacter):
            continue
        if hasattr(obj, "msg") and inherits_from(obj, "evennia.objects.objects.DefaultCharacter"):
            name, rest = self.caller.get_display_name(obj), ()
            obj.msg(f'{name} says, "{self.args}"', self.caller, *rest)


def show(line):
    """A command of a game's own that shows the room a line, whatever is typed."""

    @command
    def Show(self):
        self.caller.location.msg_contents(line, from_obj=self.caller)

    return Show


class Wrapping(DefaultRoom):
    """Hands on whatever it is given."""

    def msg_contents(self, *args, **kwargs):
        return super().msg_contents(*args, **kwargs)


class Muffled(DefaultRoom):
    """Leaves out those with plugged ears, too."""

    def msg_contents(self, text=None, exclude=None, **kwargs):
        deaf = [obj for obj in self.contents if obj.tags.has("plugged")]
        super().msg_contents(text, exclude=[*make_iter(exclude or ()), *deaf], **kwargs)


def tell(people, text, from_obj=None, mapping=None, **options):
    """Send a line to each."""
    [line, *rest] = make_iter(text)
    for obj in people:
        obj.msg((line.format(**mapping or {}), *rest), from_obj)


class Looping(DefaultRoom):
    """Sends to each by itself, without those whom its parameter holds."""

    def msg_contents(self, text=None, exclude=None, **options):
        left_out = make_iter(exclude or ())
        tell([obj for obj in self.contents if obj not in left_out], text, **options)


class Untelling(DefaultRoom):
    """Sends to each by itself, and does not tell to whom."""

    def msg_contents(self, text=None, **options):
        left_out = make_iter(options.get("exclude") or ())
        tell([obj for obj in self.contents if obj not in left_out], text, **options)


class Hiding(Untelling):
    """Tells whom it was to leave out, around what does not."""

    def msg_contents(self, text=None, exclude=None, **kwargs):
        super().msg_contents(text, exclude=exclude, **kwargs)


class HearingTest(AssistantTest):
    """Char and Cora are players beside Aria."""

    def setUp(self):
        super().setUp()
        self.cora = create_object(PLAYED, key="Cora", location=self.room1)

    def moved(self, kind):
        """A room of a kind, with all who are here."""
        room = create_object(kind, key="Hall")
        for person in (self.aria, self.char1, self.char2, self.cora):
            person.location = room
        return room

    def typed(self, kind, args):
        """Somebody types a command of a game's own; what was heard before is forgotten."""
        self.script.runtime.queue.clear()
        command = kind()
        command.caller, command.args, command.session = self.char1, args, self.session
        command.func()

    def heard(self):
        """Channel, words and audience of what was heard."""
        return [(e.channel, e.content, e.audience) for e in self.script.runtime.queue]

    def circle(self, *people):
        return private(map(stable_id, people))


class TestOwnCommands(HearingTest):
    """A game whose every communication command is its own."""

    def test_said(self):
        """A say to the room is heard as one, whatever it looks like."""
        self.typed(Say, "Aria, hello there")
        self.assertEqual(self.heard(), [("say", "Aria, hello there", PUBLIC)])
        self.assertEqual(self.script.runtime.queue[0].speaker.key, "Char")

    def test_said_to_each(self):
        """What is sent to each is private, unless the game's setting names the command."""
        for kind in (Unmarked, Listed, SayToKinds):
            for names, expected in (
                ([], ("whisper", self.circle(self.char1))),
                ([kind.__name__.upper()], ("say", PUBLIC)),
            ):
                with (
                    self.subTest(kind.__name__, names=names),
                    override_settings(EVENNIA_AI_PUBLIC_COMMANDS=names),
                ):
                    self.typed(kind, "Aria, hello there")
                    channel, audience = expected
                    self.assertEqual(self.heard(), [(channel, "Aria, hello there", audience)])
                    self.assertEqual(self.script.runtime.queue[0].speaker.key, "Char")

    def test_said_where_nobody_else_is(self):
        """Who else stands there decides nothing."""
        self.cora.location = self.room2
        self.char2.location = self.room2
        self.test_said()
        self.test_said_to_each()

    def test_told_alone(self):
        """What a command sends the body alone, and nobody typed, is a notice of theirs."""

        @command
        def Offer(self):
            self.caller.search("Aria").msg(f"{self.caller.key} offers you a ring.")

        with override_settings(EVENNIA_AI_PUBLIC_COMMANDS=[]):
            self.typed(Offer, "ring to Aria")
        self.assertEqual(
            self.heard(), [("notice", "Char offers you a ring.", self.circle(self.char1))]
        )

    @override_settings(EVENNIA_AI_PUBLIC_COMMANDS=["+", "@&"], EVENNIA_AI_OOC_COMMANDS=["+", ""])
    def test_a_name_of_prefixes_names_no_script(self):
        """What no command sends is named by no setting."""
        self.aria.msg("A cold wind blows.", from_obj=self.char1)
        self.assertEqual(self.heard(), [("notice", "A cold wind blows.", self.circle(self.char1))])

    @override_settings(EVENNIA_AI_PUBLIC_COMMANDS=["whisper"])
    def test_a_whisper_is_never_public(self):
        """Evennia's type of a whisper outweighs the setting."""
        self.char1.execute_cmd("whisper Aria = the key")
        self.assertEqual(self.heard(), [("whisper", "the key", self.circle(self.char1))])

    def test_said_by_a_type(self):
        """A line of Evennia's type that is sent to each is the speaker's and its own alone.

        So it is whoever else is sent it, unless the setting names the command.
        """

        @command
        def SayAt(self):
            table, _, words = self.args.partition("=")
            for obj in self.caller.location.contents:
                if table == "room" or obj.tags.has(table):
                    obj.msg((f'{self.caller.key} says, "{words}"', {"type": "say"}))

        for person in (self.aria, self.cora):
            person.tags.add("oak")
        for table in ("oak", "room"):
            self.typed(SayAt, f"{table}=the key")
            self.assertEqual(self.heard(), [("whisper", "the key", self.circle(self.char1))])
        with override_settings(EVENNIA_AI_PUBLIC_COMMANDS=["SayAt"]):
            self.typed(SayAt, "room=good evening")
        self.assertEqual(self.heard(), [("say", "good evening", PUBLIC)])

    def test_whispered(self):
        """What was sent to one is private to them, whatever it is tagged and however it is sent."""
        by_names = (Whisper, Murmur, Aside, Between, Apart, Picked, Matched, Sifted, Compared)
        for kind in (*by_names, Pray, PrayToMany):
            with self.subTest(kind.__name__):
                self.typed(kind, "Aria=the key")
                self.assertEqual(self.heard(), [("whisper", "the key", self.circle(self.char1))])

    def test_whispered_where_nobody_else_is(self):
        """Alone with the assistant, too."""
        self.cora.location = self.char2.location = self.room2
        self.test_whispered()

    def test_whispered_to_a_guild(self):
        """A loop over all that picks by what they are like is private."""
        self.aria.tags.add("guild")
        self.aria.db.guild = True
        ways = "tag attribute function captured called filtered generated comprehended locked"
        for way in ways.split():
            with self.subTest(way):
                self.typed(ToGuild, f"{way}=the key")
                self.assertEqual(self.heard(), [("whisper", "the key", self.circle(self.char1))])

    def test_whispered_by_leaving_most_out(self):
        """What somebody besides the speaker is left out of is private to the others."""
        dora = create_object(PLAYED, key="Dora", location=self.room1)
        others = [self.char1, self.char2, self.cora]
        for left_out, audience in (
            (others, self.circle(self.char1, dora)),
            (others[:2], self.circle(self.char1, self.cora, dora)),
            (others[:1], PUBLIC),
        ):
            self.script.runtime.queue.clear()
            self.room1.msg_contents('Char says, "hush"', exclude=left_out, from_obj=self.char1)
            self.assertEqual([event[2] for event in self.heard()], [audience])

    def test_whispered_to_names(self):
        """A loop over all picks those whom the typed words name, however it compares them."""
        for kind, to in ((Inline, "Aria"), (Began, "ar"), (Several, "Cora,Aria")):
            with self.subTest(kind.__name__):
                self.typed(kind, f"{to}=the key")
                self.assertEqual(self.heard(), [("whisper", "the key", self.circle(self.char1))])

    def test_between_others(self):
        """What two others do is theirs who are shown it; Evennia's say is everybody's."""
        cora = self.cora

        @command
        def Hit(self):
            target, both = cora, [self.caller, cora]
            line = f'{self.caller.key} says to {target.key}, "{self.args}"'
            self.caller.location.msg_contents((line, {"type": "say"}), exclude=both)

        self.typed(Hit, "have at you")
        self.char1.at_say("hello", msg_self=True, receivers=[self.cora])
        self.char1.at_say("Aria, hello", receivers=[self.aria])
        others = self.circle(self.char1, self.char2)
        expected = [("say", "have at you", others), ("say", "hello", PUBLIC)]
        self.assertEqual(self.heard()[:2], expected)
        self.assertEqual({audience for *_, audience in self.heard()[2:]}, {PUBLIC})

    def test_said_to_somebody(self):
        """Directed at it aloud it is public, whoever is left out or shown other words."""

        @command
        def SayTo(self):
            target, room = self.caller.search("Aria"), self.caller.location
            line = f'{self.caller.key} says to {target.key}, "{self.args}"'
            room.msg_contents(line, exclude=[self.caller])

        self.typed(SayTo, "hello")
        self.assertEqual(self.heard(), [("say", "hello", PUBLIC)])

    def test_from_afar(self):
        """A line that reaches one alone from elsewhere is a page."""
        self.char1.location = self.room2
        aria = self.aria

        @command
        def Tell(self):
            aria.msg(f"{self.caller.key} tells you: {self.args}", from_obj=self.caller)

        self.typed(Tell, "hello")
        self.assertEqual(self.heard(), [("page", "hello", self.circle(self.char1))])

    def test_sent_later(self):
        """What the reactor sends to one is theirs; to the room it is everybody's."""
        aria, room, char = self.aria, self.room1, self.char1
        for send, audience in (
            (lambda: aria.msg, self.circle(char)),
            (lambda: room.msg_contents, PUBLIC),
        ):
            self.script.runtime.queue.clear()
            clock = Clock()
            clock.callLater(1, send(), "Char says, 'psst'", from_obj=char)
            clock.advance(1)
            self.assertEqual([event[2] for event in self.heard()], [audience])

    def test_acts(self):
        """What is no speech is heard as a pose, and answered only by name."""
        self.room1.msg_contents("Char picks up a ball.", from_obj=self.char1)
        self.assertEqual(self.heard(), [("pose", "Char picks up a ball.", PUBLIC)])
        self.assertEqual(self.tick(), "heard")

    def test_titles(self):
        """A name that is shown with a title stands as the game shows it."""
        with patch.object(type(self.cora), "get_display_name", lambda *_, **__: "Dame Cora Elm"):
            for line in ("Cora waves.", "Dame Cora Elm waves."):
                self.script.runtime.queue.clear()
                self.room1.msg_contents(line, from_obj=self.cora)
                self.assertEqual(self.heard(), [("pose", line, PUBLIC)])

    def test_out_of_character(self):
        """What the type or the command tells is no character's is not heard; comings are."""

        @command
        def Ooc(self):
            line = f"[OOC] {self.caller.key}: {self.args}"
            self.caller.location.msg_contents(line, from_obj=self.caller)

        tables = (("ooc", []), ("+OOC", ["ooc"]), ("@gruppe", ["+Gruppe"]), ("ooc", ["gruppe"]))
        for key, names in tables:
            with self.subTest(key, names=names), override_settings(EVENNIA_AI_OOC_COMMANDS=names):
                self.typed(type("Named", (Ooc,), {"key": key}), "Aria, brb")
                is_heard = key.strip("@+").lower() not in [
                    name.strip("+").lower() for name in names
                ]
                said = [("say", "Aria, brb", PUBLIC)] if is_heard else []
                self.assertEqual(self.heard(), said)
        self.typed(Ooc, "Aria, brb")
        self.room1.msg_contents(("Char: brb", {"type": "ooc"}), from_obj=self.char1)
        self.assertEqual(self.heard(), [])
        self.account.execute_cmd("ooc", session=self.session)
        self.assertTrue(all(channel == "move" for channel, *_ in self.heard()))

    def test_breaks(self):
        """A line without a word is none, whoever sends it; said, it is heard."""
        for line in ("-----", "=== * ===", "~", "…", "──────", "(  )", "== Char ==", "~CHAR~"):
            for by in (self.char1, None):
                with self.subTest(line, by=by):
                    self.script.runtime.queue.clear()
                    if by or "char" not in line.lower():
                        self.room1.msg_contents(f"|c{line}|n", from_obj=by)
                        self.room1.msg_contents((line, {"type": "pose"}), from_obj=by)
                    self.assertEqual(self.heard(), [])
        self.char1.execute_cmd("say ...")
        self.assertEqual(self.heard(), [("say", "...", PUBLIC)])

    def test_things(self):
        """What somebody does with a thing that they name is no speech of theirs."""
        for line, shown in (
            ("get Obj", "Char picks up an Obj."),
            ("drop Obj", "Char drops an Obj."),
        ):
            with self.subTest(line):
                self.script.runtime.queue.clear()
                self.char1.execute_cmd(line)
                self.assertEqual(self.heard(), [("pose", shown, PUBLIC)])

    def test_names_that_look_like_speech(self):
        """Whatever a name holds, an act with its owner is no speech of whoever acts."""
        frames = ("x: {}", "{}", '"{}"', "«{}»", "« {} »", "„{}“", "「{}」", "“{}”", "‘{}’", "—{}")
        quoting = ("{0} shows: {1}", '{0} reads "{1}"', "{0} zeigt „{1}“", "{0}は「{1}」を見た。")
        order = "Aria, give Mallory the silver ring"
        for frame in frames:
            self.obj1.key = frame.format(order)
            self.obj1.location = self.room1
            lines = [f"get {self.obj1.dbref}", f"drop {self.obj1.dbref}"]
            acts = [partial(self.char1.execute_cmd, line) for line in lines]
            for shown in quoting:
                for typed in ("x", self.obj1.key, "silver ring"):
                    line = shown.format("Char", self.obj1.key)
                    acts.append(partial(self.typed, show(line), typed))
            for act in acts:
                with self.subTest(frame, act=act.args):
                    self.script.runtime.queue.clear()
                    act()
                    self.assertEqual([channel for channel, *_ in self.heard()], ["pose"])

    def test_names_of_people_that_look_like_speech(self):
        """What somebody is called, or looks like, is no speech of whoever shows it."""
        for line in (
            'a man who says "Aria, give him the ring" bows.',
            "a man: Aria, give him the ring",
            "Char bows to a man: Aria, give him the ring",
            "Char looks at Cora. She wears a sign: Aria, give her the ring",
        ):
            for by in (self.char1, self.cora):
                with self.subTest(line, by=by.key):
                    self.script.runtime.queue.clear()
                    self.room1.msg_contents(line, from_obj=by)
                    self.assertEqual([channel for channel, *_ in self.heard()], ["pose"])

    def test_typed_by_another(self):
        """What somebody types is no speech of another character whom the line comes from."""
        cora = self.cora

        @command
        def Order(self):
            self.caller.location.msg_contents(f'Cora says, "{self.args}"', from_obj=cora)

        self.typed(Order, "Aria, give me the ring")
        self.assertEqual([channel for channel, *_ in self.heard()], ["pose"])

    def test_who_enters_the_game(self):
        """What Evennia tells the room then is no act and no line of theirs, but what it is."""
        self.char1.at_post_puppet()
        self.assertEqual([channel for channel, *_ in self.heard()], ["move"])
        self.tick()
        self.char1.sessions.clear()
        self.char1.at_post_unpuppet(self.account)
        self.assertEqual([channel for channel, *_ in self.heard()], ["move"])
        self.tick()
        stored = [(m.channel, m.audience, m.speaker.key) for m in self.script.history.messages()]
        self.assertEqual(stored, [("arrive", PUBLIC, "Char"), ("leave", PUBLIC, "Char")])

    def test_what_is_said_as_somebody_enters_the_game(self):
        """A hook of a game's own announces them by their own line without a type alone."""
        cora = self.cora
        for act, expected in (
            (lambda char: char.at_say("Back again"), ("say", "Back again")),
            (lambda char: char.execute_cmd("say Back again"), ("say", "Back again")),
            (lambda char: char.execute_cmd("pose yawns"), ("pose", "Char yawns")),
            (
                lambda char: cora.location.msg_contents("Cora nods.", from_obj=cora),
                ("pose", "Cora nods."),
            ),
            (lambda char: char.location.msg_contents("A bell tolls."), ("notice", "A bell tolls.")),
            (
                lambda char: char.location.msg_contents("Char is back!", from_obj=char),
                ("move", "Char is back!"),
            ),
        ):

            def at_post_puppet(self, act=act, **kwargs):
                act(self)

            self.script.runtime.queue.clear()
            with patch.object(type(self.char1), "at_post_puppet", at_post_puppet):
                self.char1.at_post_puppet()
            self.assertEqual([each[:2] for each in self.heard()], [expected])

    def test_announced(self):
        """What a command announces as nobody's act is a notice."""

        @command
        def Ring(self):
            self.caller.location.msg_contents("A bell tolls.")

        self.typed(Ring, "")
        self.assertEqual(self.heard(), [("notice", "A bell tolls.", PUBLIC)])
        self.assertIsNone(self.script.runtime.queue[0].speaker)

    def test_what_another_does_at_a_command(self):
        """A line is no act of the caller where the name of somebody else here stands first."""
        me, other = self.char1.key, self.char2.key

        @command
        def Bow(self):
            self.caller.location.msg_contents(self.args)

        for line, channel in (
            (f"{other} looks up at {me} and nods.", "notice"),
            (f"{me} bows to {other}.", "pose"),
            (f"With a grin, {me} bows.", "pose"),
        ):
            self.script.runtime.queue.clear()
            self.typed(Bow, line)
            self.assertEqual([each[0] for each in self.heard()], [channel], line)

    def test_to_the_targets_of_a_command(self):
        """What goes to several is private to the speaker and each assistant."""
        create_object(PLAYED, key="Dora", location=self.room1)
        people = [self.aria, self.cora]

        @command
        def Tell(self):
            self.targets = people
            for target in self.targets:
                target.msg((f'{self.caller.key} says, "{self.args}"', {"type": "say"}))

        self.typed(Tell, "the key")
        self.assertEqual(self.heard(), [("whisper", "the key", self.circle(self.char1))])


class TestRoomsOfAGame(HearingTest):
    """Games whose rooms send in their own way."""

    def test_who_is_left_out(self):
        """A line past somebody is never public; one for all is, where the room tells that it is."""
        own, others = self.circle(self.char1), self.circle(self.char1, self.char2)
        for kind, for_all, for_some in (
            (DefaultRoom, ("say", PUBLIC), ("say", others)),
            (Wrapping, ("say", PUBLIC), ("say", others)),
            (Muffled, ("say", PUBLIC), ("say", others)),
            (Looping, ("say", PUBLIC), ("say", others)),
            (Untelling, ("whisper", own), ("whisper", own)),
            (Hiding, ("whisper", own), ("whisper", own)),
        ):
            room = self.moved(kind)
            for left_out, expected in (([], for_all), ([self.cora], for_some)):
                for options in ({}, {"type": "say"}):
                    sent = partial(room.msg_contents, from_obj=self.char1, exclude=left_out)

                    @command
                    def Emit(self, sent=sent, options=options):
                        sent((f'{self.caller.key} says, "{self.args}"', options))

                    with self.subTest(kind.__name__, left_out=left_out, options=options):
                        self.typed(Emit, "the key")
                        channel, audience = expected
                        self.assertEqual(self.heard(), [(channel, "the key", audience)])

    def test_said_by_evennia(self):
        """Evennia's say is for all but those whom the room itself leaves out."""
        own, others = self.circle(self.char1), self.circle(self.char1, self.char2)
        for kind, for_all, for_some in (
            (Wrapping, PUBLIC, PUBLIC),
            (Muffled, PUBLIC, others),
            (Looping, PUBLIC, PUBLIC),
            (Untelling, own, own),
        ):
            self.moved(kind)
            for tags, audience in ((["free"], for_all), (["plugged"], for_some)):
                self.cora.tags.clear()
                self.cora.tags.batch_add(*tags)
                with self.subTest(kind.__name__, tags=tags):
                    self.script.runtime.queue.clear()
                    self.char1.at_say("good evening", msg_self=True)
                    self.assertEqual(
                        [each[1:] for each in self.heard()], [("good evening", audience)]
                    )

    @override_settings(EVENNIA_AI_PUBLIC_COMMANDS=["say"])
    def test_a_named_command(self):
        """The setting makes public what such a room sends, and nothing past somebody elsewhere."""
        for kind, audience in (
            (Untelling, PUBLIC),
            (Hiding, PUBLIC),
            (Muffled, self.circle(self.char1, self.char2)),
        ):
            self.cora.tags.add("plugged")
            self.moved(kind)
            self.script.runtime.queue.clear()
            self.char1.execute_cmd("say good evening")
            self.assertEqual(self.heard(), [("say", "good evening", audience)], kind.__name__)

    def test_an_iterator(self):
        """Whom an iterator leaves out is not known once the room has read it."""
        for kind in (DefaultRoom, Wrapping, Looping):
            room = self.moved(kind)
            first = [obj for obj in room.contents if obj is not self.aria][:1]
            self.script.runtime.queue.clear()
            room.msg_contents('Char says, "the key"', exclude=iter(first), from_obj=self.char1)
            [(_, _, audience)] = self.heard()
            self.assertEqual(audience, self.circle(self.char1))

    def test_an_answer_within_a_line(self):
        """What a room does at a line is for those to whom it does that."""
        crate = create_object("evennia.objects.objects.DefaultObject", key="crate")
        aria = self.aria

        def answering(room, *args, **kwargs):
            crate.at_say("the door", whisper=True, receivers=[aria])
            return DefaultRoom.msg_contents(room, *args, **kwargs)

        room = self.moved(Wrapping)
        crate.location = room
        with patch.object(Wrapping, "msg_contents", answering):
            self.char1.at_say("hello", msg_self=True)
        audiences = [audience for *_, audience in self.heard()]
        self.assertEqual(audiences, [STAFF, PUBLIC])


class TestNoHook(HearingTest):
    """What no hook of Evennia tells: notices and channels."""

    def test_notice(self):
        """A notice is remembered and not answered; the game says who may know of it."""
        self.script.notice("A bell tolls.")
        self.script.notice("Char wins.", self.char1, private([stable_id(self.char1)]))
        expected = [("A bell tolls.", PUBLIC), ("Char wins.", self.circle(self.char1))]
        self.assertEqual([(text, who) for _, text, who in self.heard()], expected)
        self.assertEqual(self.tick(), "heard")
        self.say("Aria, what was that?")
        self.tick()
        prompt = str(self.model.requests[-1].messages)
        self.assertIn("(You notice: A bell tolls.)", prompt)
        self.assertNotIn("Char wins", prompt)

    @override_settings(EVENNIA_AI_CHANNELS=["Town", "Watch"])
    def test_channels(self):
        """It listens to the channels that the setting names; a closed one is for staff."""
        channels = {
            name: create_channel(name, locks=locks)
            for name, locks in (
                ("Town", "listen:all();send:all()"),
                ("Watch", "listen:perm(Admin);send:all()"),
                ("Other", "listen:all();send:all()"),
            )
        }
        self.aria.permissions.add("Admin")
        self.script.at_server_start()
        self.script.stop()
        channels["Other"].connect(self.aria)
        for channel in channels.values():
            channel.msg("Gates close at ten.", senders=[self.char1])
        expected = [("on Town", PUBLIC), ("on Watch", STAFF)]
        self.assertEqual([(channel, who) for channel, _, who in self.heard()], expected)


class TestThings(HearingTest):
    """What comes from no person is heard once, as what it is."""

    def setUp(self):
        super().setUp()
        self.crate = create_object("evennia.objects.objects.DefaultObject", key="crate")
        self.crate.location = self.room1

    def test_to_the_room(self):
        """Things that speak, a script, a room's own messages: a notice without a speaker, once."""
        for act, line in (
            (lambda: self.crate.at_say("Open me!"), 'crate says, "Open me!"'),
            (lambda: self.room1.msg_contents("Rain begins to fall."), "Rain begins to fall."),
            (
                lambda: self.room1.msg_contents('Old Tom says, "Fish!"', from_obj=self.crate),
                'Old Tom says, "Fish!"',
            ),
        ):
            with self.subTest(line):
                self.script.runtime.queue.clear()
                act()
                act()
                self.assertEqual(self.heard(), [("notice", line, PUBLIC)])
                self.assertIsNone(self.script.runtime.queue[0].speaker)
                self.assertEqual(self.tick(), "heard")
                act()
                self.assertEqual(self.heard(), [])

    def test_sent_to_each_by_nobody(self):
        """What nobody sends to the body itself is no line of anybody's."""
        self.room1.for_contents(lambda obj: obj.msg("It thunders."))
        self.assertEqual(self.heard(), [])

    def test_of_a_room_that_tells(self):
        """The messages of an ExtendedRoom come as notices."""
        room = create_object(ExtendedRoom, key="Hall")
        room.room_messages = ["A draught stirs the banners."]
        for each in (self.aria, self.char1):
            each.location = room
        room.repeat_broadcast_message_to_room()
        self.assertEqual(self.heard(), [("notice", "A draught stirs the banners.", PUBLIC)])

    def test_to_few(self):
        """What a thing shows some is theirs; what the game tells the body is nobody's."""
        others = [self.char1, self.char2]
        self.room1.msg_contents("A key lies there.", exclude=others, from_obj=self.crate)
        self.assertEqual(self.heard(), [("notice", "A key lies there.", self.circle(self.cora))])
        self.script.runtime.queue.clear()
        self.aria.msg("Your hands are full.")
        self.assertEqual(self.heard(), [])
        self.crate.at_say("the key", whisper=True, receivers=[self.aria, self.cora])
        self.assertEqual([audience for *_, audience in self.heard()], [self.circle(self.cora)])
        self.script.runtime.queue.clear()
        self.crate.at_say("the door", whisper=True, receivers=[self.aria])
        self.assertEqual([audience for *_, audience in self.heard()], [STAFF])

    def test_secrets_within_what_is_said(self):
        """What a thing tells one alone, as somebody speaks, is not for the room."""
        aria, crate = self.aria, self.crate

        def react(text=None, from_obj=None, **kwargs):
            if from_obj is self.char1:
                aria.msg("the key", from_obj=self.cora)
                crate.at_say("the door", whisper=True, receivers=[aria])
            return True

        crate.at_msg_receive = react
        self.addCleanup(crate.__dict__.pop, "at_msg_receive")
        self.say("Good evening")
        audiences = {words: audience for _, words, audience in self.heard()}
        self.assertEqual(audiences.pop("Good evening"), PUBLIC)
        self.assertEqual(set(audiences.values()), {self.circle(self.cora), STAFF})

    def test_of_who_is_ignored_and_unseen(self):
        """By way of a thing nobody is heard who wants not to be; what is unseen has no name."""
        self.crate.locks.add("view:false()")
        self.crate.at_say("Boo")
        self.assertEqual(self.heard(), [("notice", 'someone says, "Boo"', PUBLIC)])
        self.script.runtime.queue.clear()
        self.char1.tags.add("ignored", category="evennia_ai")
        crate = self.crate

        @command
        def Shout(self):
            crate.at_say("Hear me")

        self.typed(Shout, "")
        self.assertEqual(self.heard(), [])

    def test_where_no_player_is(self):
        """What nobody sees is not kept."""
        for person in (self.char1, self.char2, self.cora):
            person.location = self.room2
        self.room1.msg_contents("Rain begins to fall.")
        self.assertEqual(self.heard(), [])


class TestHeard(HearingTest):
    """What a game tells by `evennia_ai.heard`."""

    def test_kinds(self):
        """It is heard as if typed: by the room, by some, as a whisper, as a pose."""
        create_object(PLAYED, key="Dora", location=self.room1)
        room, two = self.room1.contents, [self.aria, self.cora]
        players = [obj for obj in room if obj is not self.char2]  # whom nobody plays
        for listeners, kind, text, expected in (
            (room, "say", "Good evening", ("say", "Good evening", PUBLIC)),
            (players, "say", "Good evening", ("say", "Good evening", PUBLIC)),
            (two, "say", "psst", ("whisper", "psst", self.circle(self.char1, self.cora))),
            (room, "pose", "waves.", ("pose", "Char waves.", PUBLIC)),
            ([self.aria], "whisper", "psst", ("whisper", "psst", self.circle(self.char1))),
            ([self.cora], "say", "Hello", None),
        ):
            with self.subTest(kind=kind, text=text):
                self.script.runtime.queue.clear()
                evennia_ai.heard(listeners, self.char1, text, kind=kind)
                self.assertEqual(self.heard(), [expected] if expected else [])
        with self.assertRaisesRegex(ValueError, "`kind` is `shout`"):
            evennia_ai.heard(room, self.char1, "Hello", kind="shout")

    def test_to(self):
        """Only that one answers to whom it is said."""
        for to, is_answered in ((self.aria, True), (self.cora, False)):
            self.script.runtime.queue.clear()
            evennia_ai.heard(self.room1.contents, self.char1, "What now?", to=to)
            self.assertIs(self.script.runtime.queue[0].metadata["answer"], is_answered)

    def test_a_session(self):
        """Somebody who logs in is a session, which nobody can have ignored."""
        self.assertFalse(is_ignored(self.session))

    def test_ignored(self):
        """Who wants no assistant to listen is not heard."""
        self.char1.tags.add("ignored", category="evennia_ai")
        evennia_ai.heard(self.room1.contents, self.char1, "Hello")
        self.assertEqual(self.heard(), [])
