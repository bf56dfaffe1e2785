"""What is known of The Gilded Lantern: pages of `help`, which Aria knows as facts, too.

`build.py` sets her option `knows` to this category. A page is found by its key and its aliases.
"""

CATEGORY = "The Gilded Lantern"


def _page(key, aliases, text):
    return {"key": key, "aliases": list(aliases), "category": CATEGORY, "text": text}


HELP_ENTRY_DICTS = [
    _page(
        "the house",
        ("house", "tavern", "inn", "owner", "landlord", "landlady"),
        "This house is The Gilded Lantern, a tavern on Chandler Street. Aria keeps it.",
    ),
    _page(
        "drinks",
        ("drink", "sell", "ale", "beer", "wine", "mead", "thirsty", "price", "cost"),
        "The house sells no wine or mead: the drink here is ale, from the barrel behind the bar. "
        "It costs nothing, and whoever asks for one gets a mug of it.",
    ),
    _page(
        "food",
        ("soup", "stew", "bread", "hungry", "supper", "eat"),
        "The house serves barley soup with bread, from the pot by the fire. It costs nothing, and "
        "whoever asks for some gets a bowl of it.",
    ),
    _page(
        "bedrooms",
        ("bedroom", "bed", "upstairs", "gallery", "painted doors"),
        "Four small bedrooms are upstairs, on the gallery, each with a bird painted on its door.",
    ),
    _page(
        "Odo Marrek",
        ("odo", "marrek", "ostler", "penny", "mare", "horse"),
        "Odo Marrek is the ostler. He keeps Penny, the grey mare, in the stable.",
    ),
    _page(
        "tin soldiers",
        ("tin soldier", "soldier", "soldiers", "drummer"),
        "Of the twelve tin soldiers on the mantel one is missing, a drummer. Aria would like it "
        "back.",
    ),
]
