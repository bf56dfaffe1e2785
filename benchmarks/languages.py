"""Measure what the package recognises in each language. Prints a table, or JSON.

    python -m benchmarks.languages [--json]

No model is called and no game started. `languages.txt` holds, in each language, twenty facts with
questions in other words or forms, refusals, and sentences that the facts support or do not. Shares
from 0 to 1:

- refusal: of a model's refusals, those recognised; of the facts, those not taken for one;
- repetition: of the facts, those caught as an echo;
- coverage: of the names and the number that a summary must keep, those found in the facts, and
  those found again in the other form that the question has;
- invented: of the sentences that the facts support or do not, those told apart by their names,
  numbers and quotations;
- asked: of the facts and questions, those told apart;
- hit_1, hit_5: of the questions, those whose fact is the first, or among the first five, found.
"""

import sys
from pathlib import Path
from statistics import mean

from benchmarks.figures import show
from evennia_ai.language.script import words
from evennia_ai.language.words import asks
from evennia_ai.llm_interaction.facts import invented, lost, source_facts
from evennia_ai.llm_interaction.reply import ECHO, fault, is_refusal
from evennia_ai.recall import RecallIndex
from evennia_ai.recall.values import Turn

TEXTS = Path(__file__).with_suffix(".txt")
SPEAKERS = ("Bram", "Cora", "Dag")


def texts():
    """The blocks of the file: by language a dict of lists, facts and questions under ``|``."""
    blocks = {}
    for line in TEXTS.read_text("utf-8").splitlines():
        if line.startswith("["):
            block = blocks[line.strip("[]")] = {"|": [], "@": [], "!": [], "+": [], "-": []}
        elif line[:1] in ("@", "!", "+", "-"):
            block[line[0]].append(line[2:])
        elif line and line[0] != "#":
            block["|"].append(tuple(line.split(" | ")))
    return blocks


def measured(block):
    """The figures of one language."""
    facts, questions = zip(*block["|"], strict=True)
    names = block["@"][0].split()
    refused = [is_refusal(each) for each in block["!"]]
    refused += [not is_refusal(each) for each in facts]
    repeated = [fault(fact, "", [fact], ()) == ECHO for fact in facts]
    covered = []
    for fact, question in block["|"]:
        kept = source_facts(fact, names)
        named = [name for name in names if {*words(name)} <= {*words(fact)}]
        if "340" in fact:
            covered.append(any(each.key == "340" for each in kept))
        for name in named:
            covered.append(any(name in each.text for each in kept))
            covered.append(not lost((each for each in kept if each.text == name), question))
    source = "\n".join(f"Bram: {fact}" for fact in facts)
    told_apart = [not invented(each, source, names) for each in block["+"]]
    told_apart += [bool(invented(each, source, names)) for each in block["-"]]
    index = RecallIndex(":memory:")
    turns = [Turn(f"{n}", SPEAKERS[n % 3], fact, 1e9 + 60 * n) for n, fact in enumerate(facts)]
    index.add("s", turns)
    places = []
    for n, question in enumerate(questions):
        hits = [hit.turn_id for hit in index.search("s", question, 5)]
        places.append(hits.index(f"{n}") if f"{n}" in hits else 5)
    index.close()
    return {
        "refusal": mean(refused),
        "repetition": mean(repeated),
        "coverage": mean(covered),
        "invented": mean(told_apart),
        "asked": mean([asks(each) for each in questions] + [not asks(each) for each in facts]),
        "hit_1": mean(place < 1 for place in places),
        "hit_5": mean(place < 5 for place in places),
    }


def main():
    """Print the figures of all languages."""
    figures = {code: measured(block) for code, block in texts().items()}
    if "--json" in sys.argv[1:]:
        show(figures)
        return
    keys = list(figures["en"])
    print("|    |", " | ".join(keys), "|")
    print("|----|", " | ".join("-" * len(key) for key in keys), "|")
    for code, row in figures.items():
        print(f"| {code} |", " | ".join(f"{row[key]:.2f}".ljust(len(key)) for key in keys), "|")


if __name__ == "__main__":
    main()
