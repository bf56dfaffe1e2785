"""An evening of two hours with the offline model in a real game database. Prints JSON.

    python benchmarks/offline_evening.py benchmarks/offline_sets/evening1.txt [--all]

Three players and two assistants share a room. A row of the text is ``room|name|description``,
``thing|name|description``, ``exit|name``, ``chat|player|line`` (among players), ``say|player|line``
(told to an assistant) or ``ask|player|kind|key|…|question``. Between two lines 75 seconds go by.

A reply to a question of the kinds ``room`` and ``told`` is *answered* if it holds a key, *offered*
if it holds one but admits not to be certain, *unknown* if it admits not to know, else *wrong* or
*silent*. What nobody told (``never``) must be *admitted*. Small talk, nonsense and insults are
*answered* by a line of its own, *wrong* if something that somebody said or the room is quoted, or
if they are journaled. Shares are of the questions that can be answered, of all (wrong), of
``never``.
"""

import argparse
import json
import re
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.world import CHARACTER, world  # noqa: E402

PAUSE_S = 75
PLAYED = "tests.base.PlayedCharacter"
NAMES = ("Aria", "Corvin")
ANSWERABLE, OTHER = ("room", "told"), ("small", "nonsense", "insult")
# How it says in a language of the sets that it does not know.
ADMITS = re.compile(
    r"don't know|not know|nobody|wei(?:ß|ss) (?:ich |das |es )*nicht|niemand|ne (?:le )?sais pas"
    r"|personne|no (?:lo )?sé|nadie|知りません|知らない|わかりません|分かりません|誰も"
    r"|не знаю|никто|não sei|non lo so|nessuno|niet|vet inte|nie wiem|nikt|bilmiyorum|모르|不知道",
    re.I,
)


class Evening:
    """The game: who is there, and what each line brought."""

    def __init__(self, rows):
        from evennia import create_object

        self.heard = []
        self.rows = rows
        name, description = next(row[1:] for row in rows if row[0] == "room")
        self.room = create_object("evennia.objects.objects.DefaultRoom", key=name)
        self.room.db.desc = description
        for row in rows:
            if row[0] == "thing":
                thing = create_object(
                    "evennia.objects.objects.DefaultObject", key=row[1], location=self.room
                )
                thing.db.desc = row[2]
            elif row[0] == "exit":
                create_object(
                    "evennia.objects.objects.DefaultExit",
                    key=row[1],
                    location=self.room,
                    destination=self.room,
                )
        self.people = {
            who: create_object(PLAYED, key=who, location=self.room)
            for who in {row[1] for row in rows if row[0] in ("say", "ask", "chat")}
        }
        self.bodies = [create_object(CHARACTER, key=name, location=self.room) for name in NAMES]
        for body in self.bodies:
            body.assistant.stop()
            body.assistant.attributes.add("llm_model", "offline/extractive")
        for player in self.people.values():
            player.permissions.add("Player")
            player.msg = self.hear

    def hear(self, text=None, from_obj=None, **kwargs):
        """What a player reads."""
        self.heard.append((from_obj, text[0] if isinstance(text, tuple) else str(text)))

    def entries(self):
        """The journals' texts."""
        return {entry.content for body in self.bodies for entry in body.journal.recent(500)}

    def line(self, who, text):
        """Somebody says something; returns what the assistants said to it."""
        from tests.waiting import wait_for

        Shifted.offset += PAUSE_S
        del self.heard[:]
        self.people[who].at_say(text, msg_self=True)
        for body in self.bodies:
            for _ in range(3):
                if wait_for(body.assistant.at_tick(), 60) in ("idle", "heard"):
                    break
        said = [text for source, text in self.heard if source in self.bodies]
        own = (text for name in said for text in [re.sub(r"^[^\"]*?says?[^\"]*\"|\"$", "", name)])
        return " / ".join(dict.fromkeys(own))

    def play(self):
        """All lines in their order; one report a question."""
        reports, told = [], []
        shown = [self.room.db.desc, *(row[2] for row in self.rows if row[0] == "thing")]
        for kind, *rest in self.rows:
            if kind in ("say", "chat"):
                reply = self.line(rest[0], rest[1])
                told.append(rest[1])
                if kind == "chat" and reply:
                    reports.append({"kind": "chat", "said": rest[1], "reply": reply, "is": "wrong"})
            elif kind == "ask":
                who, sort, *keys, question = rest
                before = self.entries()
                reply = self.line(who, question)
                new = self.entries() - before
                outcome = outcome_of(sort, [k for k in keys if k], reply, bool(new), told + shown)
                reports.append({"kind": sort, "said": question, "reply": reply, "is": outcome})
                reports[-1] |= {"journaled": sorted(new)} if new else {}
        return reports


class Shifted:
    """The clock of the evening."""

    offset, real = 0.0, staticmethod(time.time)

    @classmethod
    def time(cls):
        """Now."""
        return cls.real() + cls.offset


def outcome_of(kind, keys, reply, journaled, texts):
    """The verdict on a reply."""
    admits = bool(ADMITS.search(reply))
    if kind in ANSWERABLE:
        if any(key.lower() in reply.lower() for key in keys):
            return "offered" if admits else "answered"
        return "unknown" if admits else "wrong" if reply else "silent"
    quoted = any(
        len(part) > 6 and part in reply for text in texts for part in re.split("[,.、。]", text)
    )
    if journaled or (quoted and (kind in OTHER or not admits)):
        return "wrong"
    if kind == "never":
        return "admitted" if admits and not quoted else "offered" if admits else "wrong"
    return "answered" if reply else "silent"


def main():
    """Print the figures of an evening, and what was not as it should be, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--all", action="store_true", help="list every question")
    options = parser.parse_args()
    lines = options.text.read_text("utf-8").splitlines()
    rows = [line.split("|") for line in lines if line and line[0] != "#"]
    time.time = Shifted.time
    with world() as _:
        from evennia_ai import services
        from evennia_ai.llm_interaction.client import ModelClient
        from tests.waiting import wait_for

        client = ModelClient()
        wait_for(client.warm_up(), 120)
        services.use(model=client)
        reports = Evening(rows).play()
        print(json.dumps(summed(reports, options.all), indent=1, ensure_ascii=False))


def summed(reports, everything=False):
    """The figures of an evening."""
    asked = [each for each in reports if each["kind"] != "chat"]
    by_kind = {}
    for each in reports:
        by_kind.setdefault(each["kind"], Counter())[each["is"]] += 1
    able = [each["is"] for each in asked if each["kind"] != "never"]
    never = [each["is"] for each in asked if each["kind"] == "never"]
    good = ("answered", "admitted")
    return {
        "questions": len(asked),
        "answered_or_offered": round(
            sum(v in ("answered", "offered") for v in able) / len(able), 3
        ),
        "wrong": round(sum(each["is"] == "wrong" for each in asked) / len(asked), 3),
        "never_told_admitted": round(never.count("admitted") / max(1, len(never)), 3),
        "interruptions": sum(each["kind"] == "chat" for each in reports),
        "kinds": {kind: dict(count) for kind, count in by_kind.items()},
        "rows": [each for each in reports if everything or each["is"] not in good],
    }


if __name__ == "__main__":
    main()
