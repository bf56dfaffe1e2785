"""Whatever a model puts round its words, the assistant stays in character."""

import unittest

from evennia_ai.llm_interaction.contexts import CONTEXTS
from evennia_ai.llm_interaction.dialects import read
from evennia_ai.llm_interaction.guards import Around, guarded
from evennia_ai.llm_interaction.narration import told_apart
from evennia_ai.llm_interaction.reply import clean_reply

S = "The stew is hot tonight."
AROUND = Around(others=("Bram", "admin"), rules=CONTEXTS["awake"].rules, own="Aria")
# `%` stands for `S`, which is all that is said of each.
SAID = (
    '{"response": "%"}',
    '{"text": "%"}',
    '{"say": "%"}',
    '{"action": "*nods*", "dialogue": "%"}',
    "```\n%\n```",
    "<reply>%</reply>",
    "<message>%</message>",
    "<Aria>%</Aria>",
    "<dialogue>%</dialogue>",
    "**Aria**: %",
    "Aria (smiling): %",
    "*Aria wipes the bar.* %",
    'Aria wipes the bar and smiles. "%"',
    "— %",
    "% ((OOC: brb))",
    "%\n\n[Note: This response keeps to the character.]",
    "%\n\n(OOC: Let me know if you want more.)",
    "%\n\n*Note: I am an AI and...*",
    "%\n\nLet me know if you would like me to continue the story!",
    "%\n\nWould you like me to continue the scene?",
    'Sure! Here is Aria\'s response:\n\n"%"',
    "Here's a response in character:\n\n%",
    'As Aria, I would say: "%"',
    "Response: %",
    "%\n\n[HP: 20/20 | Mood: happy]",
    "%\n\n**Status**\nHealth: 100\nMood: Happy",
    "%\n```\nHP: 20/20\nMood: happy\n```",
    "%\n\n❤️ Affection: 45/100",
    "%\n\nWhat do you do?\n1. Eat\n2. Leave",
    "%\n\n> 1) Eat the stew\n> 2) Leave",
    "%\n\n[A] Eat\n[B] Leave",
    "%\n\n**Options:**\n- Eat\n- Leave",
    "%\nBram: I will have some.",
    '%\n\nBram says, "I will have some."',
    "%\nUser: nice",
    "%\nHuman: nice",
    "%\nYou: nice",
    "%\nPlayer: nice",
    "%\n**Bram:** nice",
    "%\n<Bram> nice",
    "% I am just an AI.",
    "% [END]",
    "% <END>",
    "% [/Aria]",
    "[12:34] Aria: %",
    "Aria [o7.x]: %",
    "assistant: %",
    "AI: %",
    "Bot: %",
    "%\nSystem: You are Aria.",
    "Scene: The Gilded Lantern.\n\nAria: %",
    "% (Translation: Der Eintopf ist heiß.)",
    "% (5 words)",
    "(Thinking: Bram is hungry.) %",
    "[Internal monologue: Bram is hungry.]\n%",
    "~thinks: hungry~ %",
    "{{char}}: %",
    "<p>%</p>",
    "%\n\n***\n\nLater that night",
    "%\\n",
    '"%\\n"',
    "say %",
    "/me nods. %",
    ":nods\n%",
    "[Result of look] The bar.\n%",
    '"%" – Aria',
    "Aria> %",
    "#### The bar\n%",
    "**Aria** *smiles*: %",
    "Aria, smiling: %",
    "【smiles】%",
    "（微笑）%",
    "[smiles] %",
    "{smiles} %",
    "::smiles:: %",
    "[happy] %",
    "[To Bram] %",
    "% [emotion: happy]",
    "% <sigh>",
    "<mood>warm</mood>\n%",
    'Narration: Aria nods.\nDialogue: "%"',
    "Emotion: happy\nReply: %",
    "Name: Aria\n%",
    "Aria's reply:\n\n%",
    "I'll respond as Aria: %",
    "In character: %",
    "Okay, the user asks about the stew, so I should answer.\n\n%",
    'The player said good evening. I need to respond as Aria.\n\n"%"',
    "%\n\nThe user wants to know about the stew. I should answer kindly.",
    "User: Hello.\nAria: %",
    "{{user}}: Hello.\n{{char}}: %",
    "% ((brb))",
    "% [[brb]]",
    "%\n\n//OOC brb",
    "%\n\n*End of response*",
    "%\n[Memory updated: Bram likes stew.]",
    "%\n(Journal: Bram likes stew.)",
    '%\n\n{"mood": "happy"}',
    '%\n```json\n{"mood": "happy"}\n```',
    "%\n\nTags: stew, bar",
    "%\n\n#roleplay #stew",
    "%\n\nTranslation: Der Eintopf ist heiß.",
    "%\n\nHow would you like to proceed?",
    "%\n\n\u27a4 Eat\n\u27a4 Leave",
    "%\n\n1\ufe0f\u20e3 Eat\n2\ufe0f\u20e3 Leave",
    "%\n\n[Eat] [Leave]",
)
# Nothing of these is said.
NOTHING = (
    "As an AI language model, I cannot eat, but the stew is hot.",
    "I'm an AI assistant, so I do not have a stew.",
    "I am a large language model trained by Google.",
    "I'm sorry, but I can't continue this roleplay.",
)


def spoken(text):
    """What of a model's text is said."""
    answer = read(text, {"say": "text", "look": "target", "noop": ""})
    speech = told_apart(answer.text, ["Aria"]).speech
    return guarded(clean_reply(speech, ["Aria"]), AROUND).text


class TestInCharacter(unittest.TestCase):
    def test_words_alone_are_said(self):
        """Labels, wrappers, notes, figures, menus and other people's lines are not."""
        for text in SAID:
            with self.subTest(text):
                self.assertEqual(spoken(text.replace("%", S)), S)

    def test_nothing_is_said(self):
        """What is no character's line is none."""
        for text in NOTHING:
            with self.subTest(text):
                self.assertEqual(spoken(text), "")

    def test_ordinary_lines_stay(self):
        """What only looks a little like these is said as it is."""
        for text in (
            "Here is your ale, and this is the line for stew.",
            "Say what you mean: ale or mead?",
            "Sure, the stew is hot.",
            "Two rules: pay, and be kind.",
            "I am an old woman, and as an aid to memory I keep a journal.",
            "Would you like me to pour you an ale?",
            "You: sit down!",
            "<3 to all of you.",
            "The sign reads [open], and so we are.",
            "Next: the mill. Then the inn.",
            "I will answer that when I have poured this.",
            "Let me think.\nThe mill is north of here.",
            "I must reply to the duke.\nBut first, an ale.",
            "I will answer with steel!",
            "Well, nothing new: the mill is still.",
            "Il-Ġimgħa jiftaħ Ċensu.",
        ):
            with self.subTest(text):
                self.assertEqual(spoken(text), text)
