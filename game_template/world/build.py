"""Build the world described in `gilded_lantern.py`.

This runs at every start of the Server, but builds each part only once. What a builder changes,
moves or deletes afterwards stays that way.
"""

from django.conf import settings
from django.db import transaction
from evennia import create_object
from evennia.objects.models import ObjectDB
from evennia.server.models import ServerConfig
from evennia.utils import logger
from world import gilded_lantern as plan
from world.help_entries import CATEGORY as CATEGORY_OF_HELP

CATEGORY = "gilded_lantern"
DONE = "gilded_lantern_built"


def build_world():
    """Build the parts that were never built. Return how many there were."""
    start_room = ObjectDB.objects.get_id(settings.START_LOCATION)
    if start_room is None:
        return 0
    done = set(ServerConfig.objects.conf(DONE) or ())
    built = 0
    for name, make in _parts(start_room):
        if name in done:
            continue
        with transaction.atomic():
            make()
            done.add(name)
            ServerConfig.objects.conf(DONE, sorted(done))
        built += 1
    if built:
        logger.log_info(f"Built {built} parts of The Gilded Lantern.")
    return built


def find(name):
    """Return the object that was built for a part, or None if it was deleted."""
    return ObjectDB.objects.get_by_tag(key=name, category=CATEGORY).first()


def _parts(start_room):
    """Yield the name of each part and a function that builds it, in building order."""
    yield plan.START, lambda: _furnish_start_room(start_room)
    for room in plan.ROOMS:
        if room.name != plan.START:
            yield room.name, lambda room=room: _make(room, "typeclasses.rooms.Room", None)
    for way in plan.EXITS:
        yield way.name, lambda way=way: _make_exit(way)
    for thing in plan.THINGS:
        yield thing.name, lambda thing=thing: _make_thing(thing)
    yield "villager", _make_villager
    yield "aria", _make_assistant


def _furnish_start_room(start_room):
    """Turn the start room into the tavern."""
    room = next(room for room in plan.ROOMS if room.name == plan.START)
    start_room.key = room.key
    start_room.aliases.add(list(room.aliases))
    start_room.db.desc = room.desc
    start_room.tags.add(room.name, category=CATEGORY)


def _make(part, typeclass, location, **kwargs):
    return create_object(
        typeclass,
        key=part.key,
        aliases=list(part.aliases),
        location=location,
        tags=[(part.name, CATEGORY)],
        attributes=[("desc", part.desc)],
        **kwargs,
    )


def _make_exit(way):
    origin, destination = find(way.origin), find(way.destination)
    if origin and destination:
        _make(way, settings.BASE_EXIT_TYPECLASS, origin, destination=destination)


def _make_thing(thing):
    location = find(thing.location)
    if location:
        typeclass = thing.typeclass or settings.BASE_OBJECT_TYPECLASS
        made = _make(thing, typeclass, location, home=location)
        if thing.fixed:
            made.locks.add(f"get:{thing.taken_by}")
            made.db.get_err_msg = thing.fixed


def _make_villager():
    rooms = [room for room in map(find, plan.VILLAGER_ROUNDS) if room]
    villager = _make(plan.VILLAGER, "typeclasses.npcs.Villager", find(plan.VILLAGER.location))
    villager.db.rounds = rooms
    villager.db.doings = {name: list(lines) for name, lines in plan.VILLAGER_DOINGS.items()}
    villager.db.greeting = plan.VILLAGER_GREETING


def _make_assistant():
    """Create Aria. Her typeclass creates her script."""
    aria = _make(
        plan.ASSISTANT,
        "evennia_ai.body.Assistant",
        find(plan.ASSISTANT.location),
    )
    aria.assistant.attributes.add("persona", plan.ASSISTANT_PERSONA)
    aria.assistant.attributes.add("knows", [f"help:{CATEGORY_OF_HELP}"])
