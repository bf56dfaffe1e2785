"""Acting by a game's own commands and hooks: what it refuses, and why, is the tool's result."""

from unittest import mock

from django.test import override_settings
from evennia import CmdSet, Command, DefaultExit, DefaultObject, create_object
from evennia.contrib.game_systems.containers.containers import CmdContainerGet
from twisted.internet import reactor
from twisted.internet.task import deferLater

from evennia_ai.assistant_character import AssistantCharacter
from evennia_ai.errors import NotObeyedError, ToolError
from evennia_ai.game import evennia_internals
from evennia_ai.game.seeing import stable_id
from evennia_ai.testing import call
from tests.base import AssistantTest, command
from tests.waiting import wait_for

HERE = "tests.game.test_acting"
CONTAINERS = "evennia.contrib.game_systems.containers.containers"


def says(text):
    """A hook that says why something is not done."""

    def hook(self, who, *args, **kwargs):
        who.msg(text)
        return False

    return hook


class Slippery(DefaultObject):
    """Stays in nobody's hands."""

    at_pre_get = says("It slips through your fingers.")
    at_pre_give = says("It sticks to your hand.")
    at_pre_drop = says("It clings to your arm.")


class Barrel(DefaultObject):
    """Hands out a mug and stays where it is."""

    def at_pre_get(self, getter, **kwargs):
        create_object(DefaultObject, key="mug", location=getter)
        return False


class Gate(DefaultExit):
    """Lets nobody through."""

    at_failed_traverse = says("The gate is rusted shut.")


@command
def Get(self):
    """With a limit: one thing at most."""
    if self.caller.contents:
        return self.caller.msg("Your hands are full.")
    self.caller.search(self.args.strip()).location = self.caller


@command
def Give(self):
    """Only ask the other one first; broken for what is no lamp."""
    assert "lamp" in self.args
    self.caller.msg(f"You offer {self.args.strip()}.")


@command
def Drop(self):
    """Only where nothing is broken, and to a place for what is dropped."""
    if "egg" in self.args:
        return self.caller.msg("It would break.")
    self.caller.search(self.args.strip()).location = self.caller.location


@command
def Say(self):
    """To everybody here, in its own words; some rooms are silent; braces break it."""
    if self.caller.location.tags.has("silent"):
        return self.caller.msg("No sound leaves your lips.")
    self.caller.location.msg_contents(f"{self.caller.key} sagt: „{self.args.strip()}“")


@command
def Pose(self):
    """To each one here."""
    if self.caller.location.tags.has("silent"):
        return self.caller.msg("You cannot move a finger.")
    for obj in self.caller.location.contents:
        obj.msg(f"* {self.caller.key} {self.args.strip()} *")


def commands(*kinds):
    """A set of a game's own commands."""

    class Own(CmdSet):
        key, priority = "Own", 1

        def at_cmdset_creation(self):
            for kind in kinds:
                self.add(kind())

    return Own


class Mute(AssistantCharacter):
    """Silent where the room says so, by Evennia's hook."""

    def at_pre_say(self, message, **kwargs):
        if not self.location.tags.has("silent"):
            return message
        self.msg("A spell closes your mouth.")
        return None


class Babel(AssistantCharacter):
    """Fails as it speaks, by a fault of the game's."""

    def at_say(self, message, *args, **kwargs):
        raise TypeError("no such tongue")


class Herald(AssistantCharacter):
    """Speaks in another way."""

    def at_say(self, message, *args, **kwargs):
        if self.location.tags.has("silent"):
            return self.msg("You lost your voice.")
        words = {"who": self, "words": message}
        self.location.msg_contents("*{who}* proclaims: {words}", mapping=words)


class SayTo(Say):
    """A command whose name begins as a line may."""

    key, aliases = "say to", ("say all",)

    def func(self):
        raise AssertionError(f"typed: {self.key}")


class CmdSayOk(Command):
    """A game's own: it tells the speaker what `answer` says, and speaks unless `gagged`."""

    key, answer, gagged = "say", "Ok.", False

    def func(self):
        """To everybody else here, without a sender."""
        line = f"{self.caller.key} sagt: {self.args.strip()}"
        if self.gagged:
            line = f"{self.caller.key} struggles against a gag."
        self.caller.location.msg_contents(line, exclude=self.caller)
        self.caller.msg(self.answer.format(self.args.strip()))


class Echo(DefaultObject):
    """Answers what is said, to everybody, once."""

    def at_msg_receive(self, text=None, from_obj=None, **kwargs):
        if from_obj is not None:
            self.location.msg_contents("A hollow sound comes back.", exclude=self)
        return True


class TestActing(AssistantTest):
    """`get`, `drop`, `give` and `move`."""

    def thing(self, key, kind="evennia.objects.objects.DefaultObject", **fields):
        return create_object(kind, key=key, location=self.room1, **fields)

    def test_refused_by_hooks(self):
        """What a hook tells the body is the reason."""
        game, eel = self.script.game, self.thing("eel", f"{HERE}.Slippery")
        self.thing("gate", f"{HERE}.Gate", destination=self.room2, locks="traverse:false()")
        for act, args, reason in (
            (game.get, ["eel"], "`get eel` failed: It slips through your fingers"),
            (game.drop, ["eel"], "`drop eel` failed: It clings to your arm. You carry an eel"),
            (game.give, ["eel", "Char"], "`give eel to Char` failed: It sticks to your hand"),
            (game.move, ["gate"], "could not go `gate`: The gate is rusted shut"),
        ):
            with self.assertRaisesRegex(ToolError, reason):
                act(*args)
            eel.location = self.aria

    def test_what_is_handed_out(self):
        """What a thing hands out in its place is given, and the thing stays."""
        barrel = self.thing("barrel", f"{HERE}.Barrel")
        self.script.game.give("barrel", "Char")
        self.assertEqual(barrel.location, self.room1)
        self.assertIn("mug", [each.key for each in self.char1.contents])

    def test_what_is_handed_out_may_not_be_given(self):
        """What came to hand instead is given to whom it does not obey only if its lock says so."""
        self.account.is_superuser = self.account2.is_superuser = False
        self.thing("barrel", f"{HERE}.Barrel", locks="give:all()")
        with self.assertRaises(NotObeyedError):
            self.script.game.asked_by(stable_id(self.char2)).give("barrel", "Char2")
        self.assertEqual([each.key for each in self.aria.contents], ["mug"])

    def test_nobody_unseen_is_given_anything(self):
        """Who asks from hiding is not named by a gift."""
        lamp, char = self.thing("lamp", locks="give:all()"), self.char2
        self.account.is_superuser = self.account2.is_superuser = False
        char.locks.add(f"view:id({char.id})")
        shown = self.lines_of(self.char1)
        with self.assertRaises(ToolError) as raised:
            self.script.game.asked_by(stable_id(char)).give("lamp", stable_id(char))
        self.assertNotIn("Char2", str(raised.exception))
        self.assertEqual((lamp.location, shown), (self.room1, []))

    def test_own_commands(self):
        """Where the game has commands of its own, they decide."""
        game = self.script.game
        self.aria.cmdset.add(commands(Get, Give, Drop))
        lamp, coin = self.thing("lamp"), self.thing("coin")
        self.assertEqual(game.get("lamp"), "You get lamp. You carry a lamp.")
        with self.assertRaisesRegex(ToolError, "`get coin` failed: Your hands are full"):
            game.get("coin")
        with self.assertRaisesRegex(ToolError, "You offer lamp to Char"):
            game.give("lamp", stable_id(self.char1))
        self.assertEqual((lamp.location, coin.location), (self.aria, self.room1))
        egg = self.thing("egg")
        egg.location = self.aria
        with self.assertRaisesRegex(ToolError, "`drop egg` failed: It would break"):
            game.drop("egg")
        self.assertEqual(game.drop("lamp"), "You drop lamp. You carry an egg.")
        self.assertEqual((lamp.location, egg.location), (self.room1, self.aria))
        coin.location = self.aria
        with self.assertRaisesRegex(ToolError, "The command `give` has failed"):
            game.give("coin", stable_id(self.char1))
        self.assertEqual(coin.location, self.aria)

    def test_own_forms(self):
        """What a game's players type otherwise, the setting says."""

        @command
        def Give(self):
            name, _, person = self.args.strip().rpartition(" ")
            self.caller.search(name).location = self.caller.search(person)

        @command
        def Take(self):
            self.caller.search(self.args.strip()).location = self.caller

        game, lamp = self.script.game, self.thing("lamp")
        self.aria.cmdset.add(commands(Give, Take))
        forms = {"give": "give {thing} {person}", "get": "take {thing}"}
        with override_settings(EVENNIA_AI_ACT_BY=forms):
            self.assertEqual(game.get("lamp"), "You take lamp. You carry a lamp.")
            self.assertEqual(game.give("lamp", "Char"), "You give lamp Char. You carry nothing.")
        self.assertEqual(lamp.location, self.char1)

    def test_own_commands_that_wait(self):
        """Each is typed once, and its end is the call's, however it waits."""

        def waiting(act):
            def steps(self):
                yield 0.01
                act(self)

            def deferred(self):
                return deferLater(reactor, 0.01, act, self)

            return steps, deferred

        def get(self):
            self.caller.search(self.args.strip()).location = self.caller
            self.caller.location.msg_contents(f"{self.caller.key} nimmt {self.args.strip()}.")

        def give(self):
            name, _, person = self.args.strip().partition(" to ")
            self.caller.location.msg_contents(f"{self.caller.key} gibt {name}.")
            if name == "egg":
                raise AssertionError("an egg breaks")
            self.caller.search(name).location = self.caller.search(person)

        def drop(self):
            self.caller.location.msg_contents(f"{self.caller.key} wirft {self.args.strip()}.")

        char, shown = stable_id(self.char1), self.lines_of(self.char1)
        for gets, gives, drops in zip(*map(waiting, (get, give, drop)), strict=True):
            with self.subTest(gets.__name__):
                own = {"get": gets, "give": gives, "drop": drops}
                kinds = [type(key, (Command,), {"key": key, "func": own[key]}) for key in own]
                self.aria.cmdset.remove("Own")
                self.aria.cmdset.add(commands(*kinds))
                game, lamp, egg = self.script.game, self.thing("lamp"), self.thing("egg")
                given = game.give("lamp", char)
                self.assertEqual((lamp.location, shown), (self.room1, []))
                self.assertEqual(wait_for(given), "You give lamp to Char. You carry nothing.")
                self.assertEqual(lamp.location, self.char1)
                with self.assertRaisesRegex(ToolError, "`give egg to Char` failed: The command"):
                    wait_for(game.give("egg", char))
                self.assertEqual(egg.location, self.aria)
                with self.assertRaisesRegex(ToolError, "`drop egg` failed"):
                    wait_for(game.drop("egg"))
                lines = ["nimmt lamp.", "gibt lamp.", "nimmt egg.", "gibt egg."]
                lines += ["wirft egg."]
                self.assertEqual(shown, [f"Aria {line}" for line in lines])
                shown.clear()
                for thing in (lamp, egg):
                    thing.delete()

    def test_several_of_one_name(self):
        """The game's own commands are told which of several things is meant."""
        game = self.script.game
        self.aria.cmdset.add(commands(Get, Give, Drop))
        coins = [self.thing("coin"), self.thing("coin")]
        self.assertEqual(game.get("coin"), "You get coin. You carry a coin.")
        for coin in coins:
            coin.location = self.aria
        self.assertEqual(game.drop("coin"), "You drop coin. You carry a coin.")

    def test_a_thing_that_moves_meanwhile(self):
        """What somebody else has taken before a command looks for it stays with them."""

        @command
        def Get(self):
            yield 0.01
            for found in self.caller.search(self.args.strip(), quiet=True) or ():
                found.location = self.caller

        self.aria.cmdset.add(commands(Get))
        lamp, game = self.thing("lamp"), self.script.game
        getting = game.get("lamp")
        lamp.location = self.char1
        with self.assertRaisesRegex(ToolError, "`get lamp` failed"):
            wait_for(getting)
        self.assertEqual(lamp.location, self.char1)
        self.assertIsNone(self.aria.ndb.ai_means)
        lamp.location = self.room1
        getting = game.get("lamp")
        self.assertTrue(self.aria.ndb.ai_means)
        getting.addErrback(lambda _: None).cancel()
        self.assertIsNone(self.aria.ndb.ai_means)

    def test_a_number_in_a_name(self):
        """It is no count of other things."""
        boots, others = self.thing("7 league boots"), [self.thing("league boots") for _ in "ab"]
        self.script.game.get("7 league boots")
        self.assertEqual(boots.location, self.aria)
        self.assertEqual({other.location for other in others}, {self.room1})

    def test_a_command_that_is_barred(self):
        """The game's own, which the body may not type now, is not gone round by Evennia's."""

        @command
        def Get(self):
            raise AssertionError("it is barred")

        Get.lock_storage = "cmd:false()"
        self.aria.cmdset.add(commands(Get))
        lamp = self.thing("lamp")
        with self.assertRaisesRegex(ToolError, "you may not `get` here"):
            self.script.game.get("lamp")
        self.assertEqual(lamp.location, self.room1)

    def test_containers(self):
        """What lies in a container is taken from it by the game's command for it."""
        game = self.script.game
        chest = self.thing("oak chest", f"{CONTAINERS}.ContribContainer")
        sword, ruby = self.thing("sword"), self.thing("ruby")
        sword.location = ruby.location = chest
        with self.assertRaisesRegex(ToolError, "`get sword from oak chest` failed"):
            game.get("sword")
        self.aria.cmdset.add(commands(CmdContainerGet))
        self.assertEqual(game.get("the sword"), "You get sword from oak chest. You carry a sword.")
        chest.locks.add("get_from:false()")
        with self.assertRaisesRegex(ToolError, "no `ruby` here"):
            game.get("ruby")

    def test_containers_that_whoever_asks_may_not_open(self):
        """Nothing is taken out of them but for those whom it obeys, wherever they are."""
        game = self.script.game.asked_by(stable_id(self.char2))
        self.account.is_superuser = self.account2.is_superuser = False
        chest = self.thing("chest", f"{CONTAINERS}.ContribContainer")
        sword = self.thing("sword", locks="give:all()")
        self.aria.cmdset.add(commands(CmdContainerGet))
        for place in (self.room1, self.aria):
            with self.subTest(place=place):
                sword.location, chest.location = chest, place
                chest.locks.add(f"get_from:id({self.aria.id})")
                for act in (game.get, lambda name: game.give(name, "Char2")):
                    with self.assertRaisesRegex(ToolError, "no `sword` here"):
                        act("sword")
                    self.assertEqual(sword.location, chest)
                chest.locks.add(f"get_from:id({self.aria.id}) or id({self.char2.id})")
                self.assertIn("You carry a", game.get("sword"))
        sword.location = chest
        chest.locks.add(f"get_from:id({self.aria.id})")
        self.configure(obeys="all()")
        self.assertIn("You carry a", game.get("sword"))

    def test_the_prompt_names_what_it_carries(self):
        """What it carries stands in the system text."""
        self.thing("lamp").location = self.aria
        self.say("Aria, hello")
        self.tick()
        system = self.model.requests[-1].messages[0]["content"]
        self.assertIn("\nWhat you carry: a lamp", system)

    def test_drops(self):
        """What it carries is put down before everybody's eyes, for those who may have it."""
        lamp = self.thing("lamp")
        lamp.location = self.aria
        shown = self.lines_of(self.char1)
        self.account.is_superuser = False
        with self.assertRaises(NotObeyedError):
            self.script.game.asked_by(stable_id(self.char2)).drop("lamp")
        self.assertEqual(self.script.game.drop("lamp"), "You drop lamp. You carry nothing.")
        self.assertEqual(lamp.location, self.room1)
        self.assertEqual(shown, ["Aria drops a lamp."])
        with self.assertRaisesRegex(ToolError, "there is no `lamp`"):
            self.script.game.drop("lamp")

    def test_articles(self):
        """A thing is meant by its name with an article of any language, a person is not."""
        for key, called in (
            ("lamp", ("the lamp", "The lamp", "a lamp", "une lampe", "die Lampe", "my lamp")),
            ("Krug", ("ein Krug", "the Krug", "dein Krug")),
        ):
            thing = self.thing(key)
            thing.aliases.add("lampe" * (key == "lamp"))
            for name in called:
                with self.subTest(name):
                    self.assertIs(self.script.game._meant(name, ""), thing)
        self.char2.key = "Ray"
        self.char2.aliases.add("the bard")
        for name in ("Man Ray", "Per Ray", "Will Ray", "will ray", "the Ray"):
            with self.subTest(name), self.assertRaisesRegex(ToolError, f"no `{name}`"):
                self.script.game._meant(name, "people")
        self.char1.key = "Man Ray"
        for name, person in (("Ray", self.char2), ("Man Ray", self.char1)):
            self.assertIs(self.script.game._meant(name, "people"), person)
        for name in ("bard", "a bard"):
            self.assertIs(self.script.game._meant(name, "people"), self.char2)
        self.char1.key = "innkeeper"
        self.assertIs(self.script.game._meant("The innkeeper", "people"), self.char1)
        self.char1.key = "Char"
        self.char2.key = "a slender innkeeper"
        for name in ("a slender innkeeper", "The slender innkeeper", "slender innkeeper"):
            self.assertIs(self.script.game._meant(name, "people"), self.char2)


@override_settings(EVENNIA_AI_SPEAK_BY={"say": "say", "pose": "pose"})
class TestVoice(AssistantTest):
    """What it says and does goes the way of the game's own words and signs."""

    def body_of(self, kind):
        """An assistant of another class; returns its game."""
        self.body = create_object(f"{HERE}.{kind}", key="Bryn", location=self.room1)
        self.body.assistant.stop()
        return self.body.assistant.game

    def refused(self, act, answer):
        """Where the room is silent, what the body is told is what an act gives."""
        self.room1.tags.add("silent")
        self.assertEqual(act("We are closed, good sir."), (answer,))
        self.room1.tags.remove("silent")

    def speak_by(self, **fields):
        """The body's say is the game's own, with these fields."""
        self.aria.cmdset.remove("Own")
        self.aria.cmdset.add(commands(type("Say", (CmdSayOk,), fields)))

    def test_own_commands(self):
        """The game's own commands for talk are typed once, whatever comes of it."""
        self.aria.cmdset.add(commands(Say, SayTo, Pose))
        game, shown = self.script.game, self.lines_of(self.char1)
        self.assertEqual(game.say("Good evening $me() |rall|n."), ())
        game.emote("smiles.")
        said = "Aria sagt: „Good evening $me() |rall|n.“"
        self.assertEqual(shown, [said, "* Aria smiles. *"])
        self.refused(game.say, "No sound leaves your lips.")
        self.refused(game.emote, "You cannot move a finger.")
        self.assertEqual(len(shown), 2)

    def test_what_the_speaker_is_told(self):
        """It is what the call gives, and no sign of whether others got the line."""
        game, shown = self.script.game, self.lines_of(self.char1)
        for answer in ("Ok.", "You say it.", 'You say, "{}"', "You are gagged."):
            for gagged in (False, True):
                with self.subTest(answer, gagged=gagged):
                    self.speak_by(answer=answer, gagged=gagged)
                    told = game.say("Hello there friend")
                    self.assertEqual(told, (answer.format("Hello there friend"),))
                    line = "struggles against a gag." if gagged else "sagt: Hello there friend"
                    self.assertEqual(shown, [f"Aria {line}"])
                    shown.clear()

    def test_a_command_of_staff(self):
        """A command that no player may type is not typed, whatever rank the body has."""
        shown = self.lines_of(self.char1)
        self.aria.permissions.add("Builder")
        self.speak_by(locks="cmd:perm(Builder)")
        self.script.game.say("Hello there friend")
        self.assertEqual(shown, ['Aria says, "Hello there friend"'])

    def test_the_model_is_told(self):
        """A tool's result holds what the game answers, as a refusal."""
        self.speak_by(answer="You are gagged.", gagged=True)
        self.model.answers = [call("say", text="Well met."), ""]
        self.say("Aria, hello")
        self.tick()
        [result] = [m.content for m in self.script.history.messages() if m.role == "tool"]
        self.assertIn("The game answers: You are gagged.", result)

    def test_a_command_that_fails(self):
        """It is told as a failure, and not made good: nothing is said twice."""

        @command
        def Say(self):
            if "friends" in self.args:
                self.caller.location.msg_contents(f"{self.caller.key} sagt: {self.args.strip()}")
            raise AssertionError(self.caller.made_for_players_alone())

        self.aria.cmdset.add(commands(Say))
        game, shown = self.script.game, self.lines_of(self.char1)
        for words in ("Hello there my friends", "Hello"):
            with self.assertRaisesRegex(ToolError, "command `say` failed"):
                game.say(words)
        self.assertEqual(shown, ["Aria sagt: Hello there my friends"])

    def test_a_failing_command_is_trouble(self):
        """Staff learn that an answer was not said, and the log does not hold its words."""

        @command
        def Say(self):
            self.caller.msg(f"You say: {self.args.strip()}")
            if self.caller.location.tags.has("silent"):
                raise AssertionError("no voice")

        self.aria.cmdset.add(commands(Say))
        logged = self.enterContext(mock.patch.object(type(self.script), "log"))
        self.talk("Aria, where is the key?", "Under the old mill.")
        self.assertNotIn("old mill", str(logged.call_args_list))
        self.assertEqual(self.script.runtime.trouble.text, "")
        self.room1.tags.add("silent")
        self.talk("Aria, where is it?", "I told you.")
        self.assertIn("command `say` failed", self.script.runtime.trouble.text)

    def test_a_command_that_asks(self):
        """What nobody answers ends, and the body is free to act again."""

        @command
        def Say(self):
            answer = yield "Really?"
            self.caller.location.msg_contents(f"{self.caller.key} sagt: {answer}")

        self.aria.cmdset.add(commands(Say))
        with mock.patch.object(evennia_internals, "MOST_S", 0.05):
            wait_for(self.script.game.say("Hello"))
        self.assertNotIn("input", str(self.aria.cmdset.current.key))
        self.assertIsNone(self.aria.ndb._getinput)

    def test_without_the_setting(self):
        """A command that the setting does not name is not used."""
        self.speak_by()
        shown = self.lines_of(self.char1)
        with override_settings(EVENNIA_AI_SPEAK_BY={}):
            self.script.game.say("Hello")
        self.assertEqual(shown, ['Aria says, "Hello"'])

    def test_a_command_that_waits(self):
        """What follows waits for its end; what others tell the body meanwhile is no part of it."""

        @command
        def Say(self):
            words = self.args.strip()
            yield 0.01
            if self.caller.location.tags.has("silent"):
                self.caller.msg("No sound leaves your lips.")
                yield 0.01
                self.caller.made_for_players_alone()
            self.caller.location.msg_contents(f"{self.caller.key} sagt: {words}")

        self.aria.cmdset.add(commands(Say))
        game, shown = self.script.game, self.lines_of(self.char1)
        spoken = game.speak("Hello. *waves* Bye.", "public", "say", None)
        self.assertEqual(shown, [])
        wait_for(spoken)
        expected = ["Aria sagt: Hello.", "Aria waves", "Aria sagt: Bye."]
        self.assertEqual(shown, expected)
        self.room1.tags.add("silent")
        spoken = game.say("Hello")
        self.char1.execute_cmd("whisper Aria = the key is red")
        with self.assertRaisesRegex(ToolError, "command `say` failed"):
            wait_for(spoken)
        self.assertEqual([line for line in shown if "whisper" not in line], expected)

    def test_words_choose_no_command(self):
        """Neither another command's longer name, nor a nick, nor a number of many takes them."""
        self.aria.cmdset.add(commands(Say, SayTo, Pose))
        self.aria.nicks.add("say hi $1", "drop $1", category="inputline")
        lines = ["to be honest, yes.", "all is well.", "hi there friend", "It is 3-2; drop all"]
        shown = self.lines_of(self.char1)
        for line in lines:
            self.script.game.say(line)
        self.assertEqual(shown, [f"Aria sagt: „{line}“" for line in lines])

    @override_settings(EVENNIA_AI_SPEAK_BY={})
    def test_own_hooks(self):
        """Hooks of the game's characters change or refuse what is said."""
        game, shown = self.body_of("Mute"), self.lines_of(self.char1)
        game.say("Hello")
        self.room1.tags.add("silent")
        with self.assertRaisesRegex(ToolError, "nothing here: A spell closes your mouth"):
            game.say("Hello")
        self.room1.tags.remove("silent")
        game = self.body_of("Herald")
        game.say("Hear ye")
        self.refused(game.say, "You lost your voice.")
        self.assertEqual(shown, ['Bryn says, "Hello"', "*Bryn* proclaims: Hear ye"])

    @override_settings(EVENNIA_AI_SPEAK_BY={})
    def test_a_hook_that_fails(self):
        """A fault of the game's is what the speaker is told, as of a command."""
        game = self.body_of("Babel")
        with self.assertRaisesRegex(ToolError, "the game failed to show it: .*no such tongue"):
            game.say("Hello")
        self.assertEqual(game.emote("smiles."), ())

    def test_what_follows_is_no_refusal(self):
        """What a thing answers at once, to all, is not what the body is told.

        A command that is locked for it is not typed.
        """
        self.aria.cmdset.add(commands(type("Locked", (Say,), {"locks": "cmd:perm(Admin)"})))
        create_object(f"{HERE}.Echo", key="wall", location=self.room1)
        shown = self.lines_of(self.char1)
        self.assertEqual(self.script.game.say("Hello"), ())
        self.assertEqual(shown, ['Aria says, "Hello"', "A hollow sound comes back."])
