"""Configuration: checks, defaults, what is said of bad values."""

import unittest
from datetime import time

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.errors import ConfigError
from evennia_ai.kinds import Allowed, shown
from evennia_ai.options import (
    EMOTES,
    OPTIONS,
    AssistantConfig,
    Layer,
    check_option,
    configured,
    within_hours,
)
from tests.strategies import FEW

plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(300, 6000).map(lambda digits: -(10**digits)),
    st.floats(),
    st.text(),
    st.binary(),
)
anything = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner), st.tuples(inner), st.dictionaries(st.text(), inner), st.just(object())
    ),
    max_leaves=5,
)
names = st.sampled_from(sorted(OPTIONS))
ALLOWED = Allowed(["openai/a", "own/*"], {"say"}, {"perm", "id"}, fields=True)
clock = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.integers(0, 59))


def parse_option(name, text):
    """A value of an option as somebody types it."""
    return AssistantConfig.parsed(name, text)


class TestDefaults(unittest.TestCase):
    """The table of options."""

    def test_each_option(self):
        """Its default is of its own kind; it says in a sentence what it is, and has a group."""
        for name, option in OPTIONS.items():
            self.assertEqual(check_option(name, option.default), option.default, name)
            self.assertEqual(option.default, getattr(AssistantConfig(), name))
            self.assertEqual(option.name, name)
            self.assertTrue(option.help.endswith("."), name)
            self.assertTrue(option.facts["group"] and option.kind.says, name)


NAN, INFINITE = float("nan"), float("inf")
# Of each kind of value an option, what it takes in which stored form, and what it does not take.
KINDS = {
    "compact_enabled": (
        [(True, True), (False, False), ("On", True), ("no", False), ("TRUE", True)],
        [2, None, "maybe", "", []],
    ),
    "compact_preserve_window": (
        [(1, 1), ("20", 20), (10_000, 10_000), (3.0, 3)],
        [0, 10_001, 2.5, True, "x", None, NAN, INFINITE, -(10**400), [5]],
    ),
    "immediate_window": (
        [(None, None), ("None", None), ("", None), (" ", None), ("64", 64)],
        [0, False, "x"],
    ),
    "llm_fallback_models": (
        [("a, b\nc", ("a", "b", "c")), (["a"], ("a",)), ("none", ())],
        [5, [""], [None], [["a"]]],
    ),
    "emotes": (
        [
            ({"wake": " stirs. ", "sleep": "none"}, {"wake": "stirs.", "sleep": None}),
            (None, {}),
            ("None", {}),
        ],
        [{"dance": "dances."}, {"wake": 5}, {"wake": "x" * 501}, [("wake", None)], "wakes."],
    ),
    "spend_caps": (
        [({"tokens_day": "500", "cost_month": None}, {"tokens_day": 500, "cost_month": None})],
        [{"tokens": 5}, {"cost_day": -1}, 5],
    ),
    "obeys": (
        [
            (" perm(Builder) ", "perm(Builder)"),
            ("all()", "all()"),
            ("id(5) or not attr(feud, Marrek)", "id(5) or not attr(feud, Marrek)"),
            ("perm(Player) AND NOT tag(thief)", "perm(Player) AND NOT tag(thief)"),
        ],
        ["", "Bob", "perm(Builder", "tool:all()", "all();get:all()", "all() perm(Player)"]
        + ["or all()", "(all())", "all() or", True, None, 5],
    ),
    "sleep_schedule": (
        [
            (" 23:00 - 06:30 ", "23:00 - 06:30"),
            ("Game 22:15-6:00", "game 22:15-6:00"),
            ("real 1:00-2:00", "real 1:00-2:00"),
            ("none", None),
        ],
        ["24:00-06:00", "23:60-06:00", "23:00-24:00", "23:00", "always", 23, "1:00-2:61"],
    ),
}


class TestChecked(unittest.TestCase):
    """Values by kind."""

    def test_kinds(self):
        """What an option takes is stored in one form; anything else is refused by its name."""
        for name, (good, bad) in KINDS.items():
            for value, stored in good:
                self.assertEqual(check_option(name, value), stored, value)
                self.assertIs(type(check_option(name, value)), type(stored))
            for value in bad:
                with self.assertRaisesRegex(ConfigError, f"`{name}` takes ", msg=repr(value)):
                    check_option(name, value)

    @FEW
    @given(st.sampled_from(("", "game", "game ", "real", "real\t", "moon ")), clock, clock, clock)
    def test_what_is_taken_as_a_schedule_can_be_read(self, before, start, end, now):
        """Every schedule that passes the check is one the tick can tell the time by."""
        try:
            stored = check_option("sleep_schedule", f"{before}{start}-{end}")
        except ConfigError:
            return
        asked = []
        within_hours(stored, lambda game: (asked.append(game), time.fromisoformat(now))[1])
        self.assertEqual(asked, [before.startswith("game")])

    def test_over_midnight(self):
        """A span that ends before it begins runs over midnight; its end is not in it."""

        def at(minute):
            return within_hours("23:00-06:00", lambda game: time(*divmod(minute, 60)))

        inside = [minute for minute in range(1440) if at(minute)]
        self.assertEqual(inside, [*range(360), *range(1380, 1440)])

    def test_shown(self):
        """Texts bare, lists separated by commas, as JSON where that would part a text."""
        values = {"a b": "a b", ("a", "b"): "a, b", (): "none", None: "None", ("a, b",): '["a, b"]'}
        self.assertEqual([shown(value) for value in values], list(values.values()))

    def test_unknown_option(self):
        """An unknown option is named, with where to find those there are."""
        with self.assertRaisesRegex(ConfigError, "no option `colour`.*aiconfig"):
            check_option("colour", "red")

    @FEW
    @given(names, anything)
    def test_stored_form_is_final(self, name, value):
        """Any value is refused by its name or taken; what was taken is taken again unchanged."""
        try:
            stored = check_option(name, value)
        except ConfigError as error:
            self.assertIn(f"`{name}`", str(error))
            self.assertLess(len(str(error)), 250)
        else:
            self.assertEqual(check_option(name, stored), stored)


class TestParsed(unittest.TestCase):
    """Values as somebody types them."""

    def test_typed(self):
        """Literals where they are some, else the text itself."""
        for name, text, value in (
            ("compact_preserve_window", " 30 ", 30),
            ("tool_levels", "{'say': 'off'}", {"say": "off"}),
            ("llm_fallback_models", "('a', 'b')", ("a", "b")),
            ("llm_fallback_models", "a, b", ("a", "b")),
            ("persona", "an old bard", "an old bard"),
            ("persona", "'an old bard'", "an old bard"),
            ("compact_model", "None", None),
            ("compact_auto", "off", False),
        ):
            self.assertEqual(parse_option(name, text), value)

    def test_texts(self):
        """Where a text is wanted nothing typed is rewritten; a list needs quotes to be one."""
        for text in ("3.10", "007", "1e3", "1_000", "{{1}}", "True", "{[1]: 2}", "[sic]"):
            self.assertEqual(parse_option("persona", text), text)
        for text in ("[1,2]", "{}", "('a', 'b')", "{1}", "b'x'"):
            for name in ("persona", "llm_model"):
                with self.assertRaisesRegex(ConfigError, f"`{name}` takes ", msg=text):
                    parse_option(name, text)
            self.assertEqual(parse_option("persona", repr(text)), text)

    def test_refused(self):
        """What is no value is refused with what would be one."""
        for text in ("many", "0", "0x" + "f" * 6000, "{[1]: 2}", "{{1}}", "[" * 5000, "\0"):
            with self.assertRaisesRegex(ConfigError, "a whole number from 1 to 10,000"):
                parse_option("compact_preserve_window", text)

    def test_languages(self):
        """By code or any name; what is none is refused with examples."""
        for text in ("de", "German", "deutsch", "日本語", "sv", "Svenska", "Tiếng Việt"):
            self.assertEqual(parse_option("language", text), text)
        self.assertEqual(parse_option("language", "AUTO"), "auto")
        for text in ("12345", "x", "['de']"):
            with self.assertRaisesRegex(ConfigError, "such as de, German"):
                parse_option("language", text)

    @FEW
    @given(names, anything)
    def test_round_trip(self, name, value):
        """A stored value, shown as a literal and typed again, is the same."""
        try:
            stored = check_option(name, value)
        except ConfigError:
            stored = OPTIONS[name].default
        self.assertEqual(parse_option(name, repr(stored)), stored)


def read(values, allowed=Allowed()):  # noqa: B008 - frozen
    """The configuration and the problems of an assistant's own values."""
    result = configured(Layer("set here", values, allowed))
    return result.config, result.problems


class TestConfigured(unittest.TestCase):
    """Configurations from stored values."""

    def test_bad_values_are_told_and_replaced(self):
        """A bad value gives its default and one problem that names it; the rest is used."""
        stored = {"compact_preserve_window": "lots", "llm_timeout_s": 5, "colour": "red"}
        config, problems = read(stored)
        self.assertEqual((config.compact_preserve_window, config.llm_timeout_s), (20, 5))
        (problem,) = problems
        self.assertEqual(problem.name, "compact_preserve_window")
        self.assertIn("`compact_preserve_window` = 'lots'", str(problem))
        self.assertIn("The default 20 is used.", str(problem))

    def test_reserve_above_half(self):
        """A reserve larger than half of the context is cut to half, and that is told."""
        config, problems = read({"max_context_tokens": 1000, "reply_reserve_tokens": 501})
        self.assertEqual(config.reply_reserve_tokens, 500)
        self.assertEqual([problem.name for problem in problems], ["reply_reserve_tokens"])
        self.assertIn("500 is used", str(problems[0]))
        self.assertEqual(read({"max_context_tokens": 2048})[1], ())

    def named(self, **stored):
        """The names of the problems that a game with one model, tool and lock function sees."""
        return [problem.name for problem in read(stored, ALLOWED)[1]]

    def test_unknown_names(self):
        """Tools and lock functions that a game does not have are named; the lock is the default."""
        self.assertEqual(self.named(tool_levels={"flying": "on"}), ["tool_levels"])
        self.assertEqual(self.named(tool_levels={"say": "on"}), [])
        self.assertEqual(read({"tool_levels": {"flying": "on"}})[1], ())
        for lock in ("fly()", "perm(Builder) or fly()", "not fly(x)"):
            config, [problem] = read({"obeys": lock}, ALLOWED)
            self.assertEqual(config.obeys, OPTIONS["obeys"].default)
            self.assertIn("there is no lock function `fly`", problem.says)
        self.assertEqual(self.named(obeys="not perm(Builder)"), [])
        self.assertEqual(read({"obeys": "fly()"})[1], ())

    def test_models(self):
        """Only models of the list are used, by name or pattern, and never an address."""
        for name in ("openai/a", "own/any", "own/a/b:Q4"):
            self.assertEqual(self.named(llm_model=name, llm_fallback_models=[name]), [])
        for name in ("openai/b", "OPENAI/a", "xown/a", "", "a" * 600, "own/http://h/x"):
            for option in ("llm_model", "compact_model"):
                with self.subTest(name=name[:20], option=option):
                    config, problems = read({option: name}, ALLOWED)
                    self.assertIsNone(getattr(config, option))
                    self.assertEqual(len(problems), 1 if name else 0)
        config, [problem] = read({"llm_fallback_models": "own/a, openai/b"}, ALLOWED)
        self.assertEqual(config.llm_fallback_models, ())
        self.assertIn("`openai/b` is not among the models of the setting", problem.says)
        for known in (ALLOWED, Allowed(), Allowed(["*"]), Allowed(["x/http://h"])):
            config, [problem] = read({"llm_model": "x/http://h"}, known)
            self.assertIsNone(config.llm_model)
            self.assertIn("holds an address", problem.says)

    def test_fields_of_requests(self):
        """Builders set numbers that steer the choice of words; the setting sets anything."""
        for extra in ({"temperature": 0.7}, {"seed": 4, "top_p": 1}, {}):
            self.assertEqual(check_option("llm_extra", extra, ALLOWED), extra)
        for extra in ({"api_base": 1}, {"temperature": "hot"}, {"seed": True}):
            with self.assertRaisesRegex(ConfigError, "`llm_extra`: "):
                check_option("llm_extra", extra, ALLOWED)
            self.assertEqual(check_option("llm_extra", extra), extra)
        with self.assertRaisesRegex(ConfigError, "`llm_extra` takes "):
            check_option("llm_extra", {"top_p": float("nan")})

    def test_layers(self):
        """The last layer wins; a dict is laid over those before it, name by name."""
        guards = Layer("guards", {"attention": "all", "emotes": {"wake": None}, "persona": 5})
        own = Layer("here", {"attention": "room", "emotes": {"busy": "waits."}, "post": "maybe"})
        result = configured(guards, own)
        self.assertEqual(result.config.attention, "room")
        self.assertEqual(result.config.emotes, {**EMOTES, "wake": None, "busy": "waits."})
        self.assertEqual(result.sources, {"attention": "here", "emotes": "here"})
        self.assertEqual([p.name for p in result.problems], ["persona", "post"])
        result = configured(guards, Layer("here", {"attention": "none"}))
        self.assertEqual((result.config.attention, result.sources["attention"]), ("all", "guards"))
        self.assertIn("The value 'all' is used.", str(result.problems[-1]))

    @FEW
    @given(st.dictionaries(st.one_of(names, st.text(max_size=3)), anything))
    def test_never_fails(self, values):
        """Whatever is stored, there is a valid configuration, and each bad value is told once."""
        config, problems = read(values)
        told = {problem.name for problem in problems}
        for name, option in OPTIONS.items():
            used, wanted = getattr(config, name), option.default
            self.assertEqual(check_option(name, used), used)
            if option.kind.of is not None or (name == "reply_reserve_tokens" and name in told):
                continue
            try:
                wanted = check_option(name, values.get(name, option.default))
            except ConfigError:
                self.assertIn(name, told)
            else:
                self.assertNotIn(name, [p.name for p in problems if "used." in p.says])
            self.assertEqual(used, wanted)
        self.assertTrue(all(len(str(problem)) < 1000 for problem in problems))
        self.assertLessEqual(config.reply_reserve_tokens, config.max_context_tokens // 2)
