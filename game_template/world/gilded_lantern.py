"""The rooms, things and people of The Gilded Lantern, as data for `build.py`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A room, exit, thing or person.

    Args:
        name: Its name in this file. It becomes a tag and must not change.
        key: The name that players see.
        desc: The description that players see.
        aliases: Other names for it.
        location: Name of the room it starts in.
        fixed: Message for a player who tries to take it. If empty, it can be taken.
        taken_by: For a fixed thing, the lock functions of those who may take it all the same.
        typeclass: The typeclass of a thing. If empty, the game's own for objects.
        origin: For an exit, the room it leads from.
        destination: For an exit, the room it leads to.
    """

    name: str
    key: str
    desc: str
    aliases: tuple[str, ...] = ()
    location: str = ""
    fixed: str = ""
    taken_by: str = "false()"
    typeclass: str = ""
    origin: str = ""
    destination: str = ""


START = "lantern"

# What guests ask for, by the code of their language: drink and food.
ASKED_FOR = {
    "ar": (("بيرة",), ("حساء", "شوربة")),
    "de": (("Bier",), ("Suppe",)),
    "en": (("ale", "beer", "pint"), ("soup", "stew")),
    "es": (("cerveza",), ("sopa",)),
    "fr": (("bière",), ("soupe",)),
    "hi": (("बीयर",), ("सूप",)),
    "it": (("birra",), ("zuppa", "minestra")),
    "ja": (("ビール", "エール"), ("スープ",)),
    "ko": (("맥주",), ("수프",)),
    "pl": (("piwo", "piwa"), ("zupa", "zupę")),
    "pt": (("cerveja",), ("sopa",)),
    "ru": (("пиво", "пива", "эль"), ("суп", "супа")),
    "th": (("เบียร์",), ("ซุป",)),
    "tr": (("bira",), ("çorba",)),
    "zh": (("啤酒", "麦酒"), ("热汤", "汤面")),
}
DRINK = tuple(name for drink, _ in ASKED_FOR.values() for name in drink)
FOOD = tuple(name for _, food in ASKED_FOR.values() for name in food)

ROOMS = (
    Part(
        "lantern",
        "The Gilded Lantern",
        "Smoke has browned the beams of this taproom, and two hundred years of elbows have worn "
        "the bar as smooth as a river stone. Over it hangs the lantern itself: brass, once gilt, "
        "with one cracked pane that throws a crooked star on the ceiling. A fire mutters in the "
        "hearth. A noticeboard sags beside the door, and stairs climb into the dark above.",
        aliases=("taproom", "tavern"),
    ),
    Part(
        "gallery",
        "The Upper Gallery",
        "A narrow walk of planks runs around three sides of the taproom, close enough under the "
        "roof that tall guests stoop. Doors to four small bedrooms stand in a row, each with a "
        "bird painted on it in place of a number. From the rail you can see every table below "
        "and hear, when the fire is quiet, most of what is said at them.",
        aliases=("gallery",),
    ),
    Part(
        "cellar",
        "The Cellar",
        "The steps end on packed earth. Casks lie in two long rows, chalked with dates, and the "
        "air is cold and smells of apples, wet oak and mice. At the far end the wall changes "
        "from brick to older, bigger stones that nobody now alive remembers laying.",
    ),
    Part(
        "street",
        "Chandler Street",
        "Cobbles run downhill between crooked house fronts toward the sound of the river. Tallow "
        "smoke from the candle makers' yards softens every edge. Above the tavern door a painted "
        "sign turns in the wind: a lamp, with rays like the petals of a daisy.",
        aliases=("street",),
    ),
    Part(
        "stable",
        "The Stable",
        "Four stalls, one horse, and more swallows than anyone has counted. Light comes in "
        "stripes through the plank wall and lies across the straw. Harness hangs on pegs in an "
        "order that plainly matters to somebody.",
    ),
)

EXITS = (
    Part(
        "lantern_up",
        "up",
        "A flight of stairs. The third step creaks.",
        ("u", "upstairs", "gallery"),
        origin="lantern",
        destination="gallery",
    ),
    Part(
        "gallery_down",
        "down",
        "Down to the noise and the warmth.",
        ("d", "downstairs"),
        origin="gallery",
        destination="lantern",
    ),
    Part(
        "lantern_cellar",
        "cellar",
        "A trapdoor behind the bar, propped open with a jug.",
        ("trapdoor", "below"),
        origin="lantern",
        destination="cellar",
    ),
    Part(
        "cellar_up",
        "up",
        "The underside of the bar, and light.",
        ("u", "bar"),
        origin="cellar",
        destination="lantern",
    ),
    Part(
        "lantern_out",
        "out",
        "A heavy door with a bell on a spring.",
        ("door", "street", "o"),
        origin="lantern",
        destination="street",
    ),
    Part(
        "street_in",
        "in",
        "The tavern door. It is warm on the other side.",
        ("tavern", "inside", "lantern"),
        origin="street",
        destination="lantern",
    ),
    Part(
        "street_east",
        "east",
        "A gate wide enough for a cart.",
        ("e", "stable", "gate"),
        origin="street",
        destination="stable",
    ),
    Part(
        "stable_west",
        "west",
        "Back to the cobbles.",
        ("w", "street", "gate"),
        origin="stable",
        destination="street",
    ),
)

THINGS = (
    Part(
        "lamp",
        "brass lantern",
        "The lamp the house is named for. Flecks of gold leaf still "
        "cling in the seams. Somebody has scratched on the rim, very small: |wcome home|n.",
        ("lantern", "lamp"),
        "lantern",
        "It has hung there longer than you have lived. Leave it.",
    ),
    Part(
        "board",
        "noticeboard",
        "Four notices are legible.\n"
        "  |wLOST:|n one grey goose, answers to Bishop.\n"
        "  |wWANTED:|n a steady hand for the candle works. Ask for Ysolde.\n"
        "  |wFOR SALE:|n a boat. It floats. No questions.\n"
        "  |wASK ARIA:|n she remembers what you tell her.",
        ("notices", "notice", "board"),
        "lantern",
        "It is nailed to the wall, twice.",
    ),
    Part(
        "hearth",
        "hearth",
        "Logs of pear wood, burning slowly. An iron kettle hangs over them, "
        "and on the mantel stand eleven tin soldiers and a gap.",
        ("fire", "mantel"),
        "lantern",
        "You would burn your fingers.",
    ),
    Part(
        "tankard",
        "pewter tankard",
        "A dented tankard with the letters |wM.R.|n and a date too worn to read.",
        ("tankard",),
        "lantern",
    ),
    Part(
        "tap",
        "ale barrel",
        "A barrel lies on a trestle behind the bar, with a brass tap in its head and a row of "
        "earthenware mugs on hooks above it. Whoever wants a mug of ale asks at the bar.",
        ("tap", "barrel", "mugs of ale", *DRINK),
        "lantern",
        'The tap is behind the bar. Ask for an ale: "Aria, an ale, please."',
        taken_by="tag(aria, gilded_lantern) or perm(Builder)",
        typeclass="typeclasses.tap.Tap",
    ),
    Part(
        "pot",
        "soup pot",
        "A black pot stands at the edge of the fire, with barley soup in it, a ladle beside it, "
        "and a stack of bowls. Whoever wants a bowl of soup asks at the bar.",
        ("pot", "ladle", "bowls of soup", *FOOD),
        "lantern",
        'The pot is hot. Ask for a bowl: "Aria, a bowl of soup, please."',
        taken_by="tag(aria, gilded_lantern) or perm(Builder)",
        typeclass="typeclasses.tap.Pot",
    ),
    *(
        Part(
            name,
            "copper coin",
            "A worn copper coin, with a lamp on one side and a bridge on the other.",
            ("coin", "copper"),
            location,
        )
        for name, location in (
            ("coin_1", "lantern"),
            ("coin_2", "gallery"),
            ("coin_3", "street"),
        )
    ),
    Part(
        "soldier",
        "tin soldier",
        "The twelfth of a set: a drummer, his paint gone but for one "
        "blue sleeve. He must have fallen through the rail from below. Or been hidden.",
        ("soldier", "drummer"),
        "gallery",
    ),
    Part(
        "doors",
        "row of painted doors",
        "A wren, a heron, an owl, and a thing with too many feathers "
        "that the painter must have made up.",
        ("doors", "painted doors", "birds"),
        "gallery",
        "The doors stay on their hinges.",
    ),
    Part(
        "cask",
        "marked cask",
        "One cask stands apart, chalked with no date, only a small drawn "
        "lantern. It sounds hollow when knocked.",
        ("cask",),
        "cellar",
        "It is bound to the wall with a chain as thick as your wrist.",
    ),
    Part(
        "stones",
        "old stones",
        "Each is as long as a man is tall. On one, under the dirt, somebody once cut a spiral.",
        ("stones", "wall", "spiral"),
        "cellar",
        "They have carried the house so far. Leave them to it.",
    ),
    Part(
        "sign",
        "painted sign",
        "Fresh gilt over old gilt over older. It creaks on the same note as the bell inside.",
        ("sign",),
        "street",
        "It hangs well out of reach.",
    ),
    Part(
        "mare",
        "grey mare",
        "She has one white ear and the look of somebody who has heard all "
        "the jokes. A brass plate on the stall says |wPENNY|n.",
        ("mare", "penny", "horse"),
        "stable",
        "Penny puts her whole weight on the foot nearest yours.",
    ),
    Part(
        "currycomb",
        "currycomb",
        "A round iron comb, its handle bound with new twine.",
        ("comb",),
        "stable",
    ),
)

VILLAGER = Part(
    "villager",
    "Odo Marrek",
    "The ostler: a long, stooped man in a leather apron, straw in his beard and a bit of sugar "
    "in every pocket. He talks to horses at length and to people hardly at all.",
    ("odo", "marrek", "ostler"),
    "stable",
)
VILLAGER_ROUNDS = ("stable", "street", "lantern", "cellar")
VILLAGER_DOINGS = {
    "stable": (
        "{name} lifts one of Penny's hooves, frowns at it, and sets it down gently.",
        "{name} tells the grey mare something, at length, in a very low voice.",
        "{name} takes a bridle from its peg, and hangs it back a finger's width to the left.",
    ),
    "street": (
        "{name} sweeps straw off the cobbles, a little at a time, with the side of his boot.",
        "{name} looks up at the sign, then at the sky, and shakes his head at both.",
    ),
    "lantern": (
        "{name} warms his hands at the hearth and counts the tin soldiers under his breath.",
        "{name} pockets two lumps of sugar from the bar and looks at nobody.",
    ),
    "cellar": ("{name} knocks on a cask, listens, and moves on to the next.",),
    "": ("{name} scratches his beard. A straw falls out.",),
}
VILLAGER_GREETING = "{name} looks up, touches two fingers to his brow at {other}, and says nothing."

ASSISTANT = Part(
    "aria",
    "Aria",
    "A woman of no certain age with ink on her thumb and her sleeves rolled for work. She keeps "
    "the bar, the keys and a thick journal with a ribbon in it, and when you speak she stops "
    "what she is doing and listens as if there would be questions later.",
    ("innkeeper", "keeper"),
    "lantern",
)
ASSISTANT_PERSONA = (
    "You are Aria, keeper of The Gilded Lantern, a tavern on Chandler Street. You are warm, dry "
    "and curious, you speak in short plain sentences, and you like a good story better than a "
    "long one. People tell you things because you remember them: you write what matters in "
    "your journal. You never invent facts; if you do not know something, you say so. You "
    "know the house well: the upper gallery with its four painted doors, the cellar with the one "
    "chained cask, the stable where Odo Marrek the ostler keeps Penny, the grey mare. A twelfth "
    "tin soldier is missing from your mantel, and you would like it back. Whoever asks gets "
    "ale from the barrel or soup from the pot."
)
