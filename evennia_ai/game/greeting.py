"""Greetings of players who arrive: the option `greetings`, said without a model."""

from evennia import DefaultCharacter
from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.cards.card import GREETED, acts
from evennia_ai.errors import ToolError
from evennia_ai.game.hearing import is_ignored, room_audience
from evennia_ai.game.seeing import find, manners_of, name_of
from evennia_ai.history.messages import ASKER, Message, Speaker
from evennia_ai.history.stored import as_dict
from evennia_ai.turns.assistant import AWAKE

# A game announces who comes and who goes alike; so much later only who has come is here.
WAIT_S = 0.5
# Somebody is greeted once in a day, and where nobody has just talked: of several assistants by one.
DAY_S, QUIET_S = 86_400, 20


@inlineCallbacks
def greet(body: DefaultCharacter, arrived: str) -> Steps[bool]:
    """Greet somebody who arrived (stable id), unless it is no time for it; fires with whether."""
    script, person, room = body.assistant, find(arrived), body.location
    if script is None or not script.enabled or script.state.mode != AWAKE:
        return False
    if person is None or room is None or person.location is not room or not person.has_account:
        return False
    now, greetings = script.now(), script.config.greetings
    greeted = {k: at for k, at in as_dict(script.store.get("greeted")).items() if now - at < DAY_S}
    line = manners_of(room).line
    is_talk = line is not None and now - line.at < QUIET_S
    is_busy = script.runtime.lock.running is not None or is_talk
    if is_busy or arrived in greeted or not greetings or is_ignored(person):
        return False
    greeting, name = greetings[len(greeted) % len(greetings)], name_of(person, body)
    try:
        for is_speech, text in acts(greeting, name, body.key):
            if is_speech:
                yield script.game.say(text)
            else:
                yield script.game.emote(text)
    except ToolError as error:
        script.log(f"a greeting was not said: {error}")
        return False
    script.store.set("greeted", {**greeted, arrived: now})
    audience, words = room_audience(body, person), greeting.replace(GREETED, name)
    said = Message(
        "assistant",
        words,
        speaker=Speaker(body.key, body.stable_id),
        audience=audience,
        channel="say",
        metadata={ASKER: arrived},  # so that it goes when they are forgotten
    )
    # A turn that began meanwhile may wait for the result of a call: nothing comes between.
    yield script.between_turns(lambda: script.history.append([said]))
    script.runtime.said.append((audience, arrived, words))
    script.note_reply(arrived)
    return True
