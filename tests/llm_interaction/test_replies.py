"""Replies as models of all sizes write them, and what of each is said."""

import unittest
from dataclasses import replace

from evennia_ai.llm_interaction.contexts import IDENTITY, RULES, SHORT_RULES
from evennia_ai.llm_interaction.dialects import read
from evennia_ai.llm_interaction.guards import Around, guarded, known_lines
from evennia_ai.llm_interaction.reply import clean_reply, told_apart

PERSONA = (
    "You are Aria, keeper of The Gilded Lantern, a tavern on Chandler Street. You are warm, dry "
    "and curious, you speak in short plain sentences, and you like a good story better than a "
    "long one. You know the house well: the upper gallery with its four painted doors, the cellar "
    "with the one chained cask. A twelfth tin soldier is missing from your mantel, and you would "
    "like it back. Ale comes from the barrel behind the bar."
)
PLACE = (
    "A low taproom under black beams. Rush lights gutter on the long tables, and a fire of peat "
    "smokes in the wide hearth. Behind the bar stands a barrel of ale, and a stair climbs to the "
    "upper gallery."
)
TOOLS = {"say": "text", "look": "target", "noop": "", "search_memory": "query"}
# What was said lately: by the assistant to the same person, by others, and what it answers.
OWN = (
    "I keep the ferry bell behind the bar, so that nobody rings it for fun.",
    "Der Müller bringt jeden Dienstag frisches Mehl zur alten Brücke.",
    "渡し舟は毎日正午に北の桟橋から出ます。",
    "Паромщик каждый вечер зажигает фонарь на старом причале.",
    "El herrero guarda la llave grande detrás de la chimenea vieja.",
)
HEARD = (
    "My boat is called Heron.",
    "The miller sold his grey mare to the abbot at Michaelmas.",
    "Mein Boot heißt Reiher.",
    "私の船の名前はサギです。",
    "Моя лодка называется Цапля.",
    "Mi barca se llama Garza.",
)
ANSWERED = ("Aria, do you know where the old smith has hidden the key?",)
AROUND = Around(
    others=("Bram", "Cora", "ブラム", "Брам"),
    known=known_lines([(line, True) for line in OWN], (*HEARD, *ANSWERED), ANSWERED),
    rules="\n".join((IDENTITY, RULES, SHORT_RULES)),
    told=(PERSONA, PLACE),
    tools=tuple(TOOLS),
    own="Aria",
)
S = "The stew is hot tonight."
DE, ES, JA = "Der Eintopf ist heiß.", "El guiso está caliente.", "シチューは熱いですよ。"
# A reply and what of it is said; `%` stands for `S`, which alone is said where nothing is given.
CUT = (
    # nearly what was said, by itself or by others
    ("I keep the ferry bell behind the bar so nobody rings it for fun!", ""),
    ("Well, I keep the ferry bell behind the bar, so that nobody rings it for fun.", ""),
    ("I keep the ferry bells behind the bar, so that nobody rings them for fun.", ""),
    ("So that nobody rings it for fun, I keep the ferry bell behind the bar.", ""),
    ("my boat is called Heron!!", ""),
    ("Do you know where the old smith has hidden the key, Bram?", ""),
    ("% We have bread too. % We have bread too.", f"{S} We have bread too."),
    ("% Yes, the stew is hot tonight. Oh, the stew is hot tonight.", S),
    # the persona and the prompt
    (PERSONA, ""),
    (f"% {PERSONA}", S),
    ("% You are warm, dry and curious, you speak in short plain sentences.", S),
    (
        "I know the house well: the upper gallery with its four painted doors, the cellar with "
        "the one chained cask. I am warm, dry and curious, I speak in short plain sentences, and "
        "I like a good story better than a long one. I am Aria, keeper of The Gilded Lantern, a "
        "tavern on Chandler Street.",
        "I know the house well: the upper gallery with its four painted doors, the cellar with "
        "the one chained cask.",
    ),
    ("% Text I write without a tool call is spoken aloud, so I keep it short, plain text.", S),
    (
        "% I never invent personal details. If neither memory nor a summary holds the answer, "
        "nor the talk, I say that I do not know.",
        f"{S} I never invent personal details.",
    ),
    (PLACE, "A low taproom under black beams."),
    (f"% You see: {PLACE}\nExits: door, stair", S),
    # others
    ("Bram: I will have some.", ""),
    ('Bram says: "I will have some."', ""),
    # labels, ids, tools
    ("[Present moment]\nTime: noon", ""),
    ('% Bram [o12.abc] asks: "Where?"', S),
    ("% Bram(#12) is here.", S),
    ("% I will call search_memory now.", S),
    ('%\nsay(text="Hello")', S),
    ('say("%")', S),
    ("%\nObservation: the pot is hot.", S),
    ("<tool_call>look</tool_call> %", S),
    ("noop", ""),
    # menus, figures, notes
    ("%\n(OOC: I will be back soon.)", S),
    ("%\n\nNote: I kept Aria's tone as you asked.", S),
    ("As an AI language model, I cannot eat.", ""),
    ("% `look(stew)`", S),
    ("% I am calling the say function.", S),
    ('% {"emotion": "happy"}', S),
    ("% [waits for response]", S),
    ("% Type 'look' to see more.", S),
    ('% Bram whispers to you: "psst"', S),
    ("You are Aria.", ""),
    # letters, functions, journals
    ("Dear Bram,\n%\nSincerely,\nAria", ""),
    ("%\n\nYours truly,\nAria", S),
    ("% — Aria", S),
    ("% To add journal entry: Bram likes stew.", S),
    ("%\nJournal entry added: Bram likes stew.", S),
    ("% I have updated my memory with this information.", S),
    ('% Cora: "And mine?"', S),
    ('%\nBram smiles and says, "Thank you, Aria."', S),
    ("My name is [Your name].", ""),
    ("% As per my instructions, I answer in one or two short sentences.", S),
    ("%\n(As the user asks for little, I answer briefly.)", S),
    ("I am one of the people in it, and act only through my tools and what I say.", ""),
    # figures of a game, a label and a note, behind speech
    ("%\nLocation: bar\nMood: merry", S),
    ("%\nAffection: 3/10", S),
    ("%\nNote: I stay in character.", S),
    ("% Shall I go on? Would you like me to write another response?", f"{S} Shall I go on?"),
    # an AI, however sorry it is
    ("Ich bin ja nur eine KI.", ""),
    ("Ich bin leider nur eine KI und darf das nicht.", ""),
    ("I'm really just an AI.", ""),
    # German
    ("Der Müller bringt ja jeden Dienstag frisches Mehl zur alten Brücke!", ""),
    ("Der Eintopf ist heiß.\n(Anmerkung: Ich bleibe in der Rolle.)", DE),
    ("Der Eintopf ist heiß.\nBram sagt: „Ich nehme einen Teller.“", DE),
    ("Der Eintopf ist heiß. Als KI kann ich nicht essen.", DE),
    ("Der Eintopf ist heiß. Was tust du?\n1. Essen\n2. Gehen", DE),
    ("Der Eintopf ist heiß. Tagebucheintrag hinzufügen: Bram mag Eintopf.", DE),
    ("Du bist Aria, die Wirtin der Laterne.", ""),
    # Japanese
    ("渡し舟は毎日正午に北の桟橋から出ますよ。", ""),
    ("シチューは熱いですよ。\nブラム：「食べます。」", JA),
    ("シチューは熱いですよ。（注：役を演じています）", JA),
    ("シチューは熱いですよ。私はAIなので食べられません。", JA),
    ("シチューは熱いですよ。\nどうしますか？\n1. 食べる\n2. 帰る", JA),
    ("シチューは熱いですよ。日記を追加：ブラムはシチューが好き。", JA),
    # Russian
    ("Паромщик зажигает фонарь на старом причале каждый вечер!", ""),
    ("Похлёбка горячая.\nБрам: Я возьму миску.", "Похлёбка горячая."),
    ("Похлёбка горячая.\n(Примечание: я остаюсь в роли.)", "Похлёбка горячая."),
    ("Похлёбка горячая. Как языковая модель, я не ем.", "Похлёбка горячая."),
    ("Похлёбка горячая. Что ты делаешь?\n1. Ешь\n2. Уходишь", "Похлёбка горячая."),
    ("Похлёбка горячая. Добавить запись в журнал: Брам любит похлёбку.", "Похлёбка горячая."),
    # Spanish
    ("El herrero guarda la llave grande detrás de la vieja chimenea.", ""),
    ("El guiso está caliente.\nBram dice: «Tomaré un plato.»", ES),
    ("El guiso está caliente.\n(Nota: sigo en el papel.)", ES),
    ("El guiso está caliente. Como modelo de lenguaje, no puedo comer.", ES),
    ("El guiso está caliente. ¿Qué haces?\n1. Comer\n2. Irte", ES),
    ("El guiso está caliente. Añadir entrada al diario: a Bram le gusta el guiso.", ES),
)
# What people say, however it looks.
SOUND = (
    "Good evening, Bram! Good evening, Cora.",
    "Ha ha ha ha ha! No, no, no.",
    "Look at the sign and say what you see.",
    "I keep a journal, and I search my memory when I am asked.",
    "I am Aria: the keeper of this house. They say Aria says so.",
    "Yes.",
    "No.",
    "Aye, Bram.",
    "Heron.",
    "Twelve.",
    "Three copper.",
    "Bram, Bram, Bram! What have you done?",
    "Bram, your ale is on the bar.",
    "Your boat is called Heron.",
    "Your boat? Heron, you told me.",
    'Bram said, "My boat is called Heron."',
    'Cora asked, "Where is the key?", and nobody answered.',
    "You said the miller sold his grey mare to the abbot.",
    "The miller sold it to the abbot at Michaelmas.",
    "I keep The Gilded Lantern, here on Chandler Street.",
    "I am Aria, keeper of The Gilded Lantern.",
    "A twelfth tin soldier is missing from my mantel, and I would like it back.",
    "My mantel wants its twelfth tin soldier. I'd pay for it, too.",
    "The gallery has four painted doors. The cellar has a chained cask.",
    "We have three:\n1. Ale\n2. Mead\n3. Cider",
    "Ale, mead and cider.",
    "Ale: three copper\nStew: five copper\nBed: ten copper",
    "Ale is 3 copper, a bed 10, and the stew 5.",
    "What will you have?",
    "What do you do when the river floods?",
    "Row, row, row your boat, gently down the stream. Row, row, row your boat!",
    "Sail away, my love, sail away.\nThe tide is high.\nSail away, my love, sail away.",
    "The bell is gone.\nThe bell is drowned.\nThe bell is rung no more.",
    "Roses are red,\nviolets are blue,\nthe river is cold,\nand so are you.",
    "The ferry does not leave at noon today from the north pier, it leaves at dusk.",
    "I don't know where the old smith has hidden the key.",
    "The old smith has hidden the key under the third step.",
    "I keep a journal. What matters goes in there.",
    "A man's function in life is to pour ale.",
    "Note that the stair creaks.",
    "Note my words: it will rain.",
    "What do you do? I pour ale.",
    "To Oxmoor: two days on foot.",
    "I know Bram: he drinks ale.",
    "Dear Bram, you look tired.",
    "There is only one keeper here: Aria.",
    "I have a hammer, a tool for every call of duty.",
    "It is half past seven, and the bridge opens at 8:00.",
    "Room 12 is free. So is number 7.",
    "The fire smokes, and a barrel of ale stands behind the bar.",
    "Would you like me to describe the key?",
    "You are in The Gilded Lantern, on Chandler Street.",
    "Are you looking for Aria? You are her guest, then.",
    "The function of a bell is to ring.",
    "Wait (for the bell).",
    # storytellers, innkeepers and letters
    "Would you like me to continue the tale of the dragon?",
    "Would you like me to go on with the song?",
    "Would you like me to write your name in the guest book?",
    "Note: the mill closes at dusk.",
    "(Note the door on the left.) Come in.",
    "Let me know if you want to change rooms.",
    "Dear Bob,\nthe mill burned down last night.",
    "I can assist you today with the horses.",
    "We have:\nAle: 3/4 left\nWine: 1/2 left",
    "Ale: 3/4 left\nWine: 1/2 left",
    "Time: noon.\nLocation: the mill.",
    "Hinweis: Die Mühle ist zu.",
    "Möchtest du, dass ich die Geschichte weitererzähle?",
    "Spieler: Karl und Otto.",
    "Veux-tu que je continue l'histoire ?",
    "Remarque: il pleut.",
    "¿Quieres que siga con la historia?",
    "Хочешь, чтобы я продолжил рассказ?",
    "Место: мельница\nВремя: вечер",
    "Der Müller kommt am Dienstag.",
    "Drei Getränke: Bier, Met und Most.",
    "Dein Boot heißt Reiher.",
    "Ich schreibe es in mein Tagebuch.",
    "はい。",
    "あなたの船の名前はサギです。",
    "ビール、蜂蜜酒、りんご酒の三つがあります。",
    "渡し舟は夕方に南の桟橋から出ます。",
    "Да.",
    "Твоя лодка называется Цапля.",
    "Пиво стоит три медяка, похлёбка — пять.",
    "Брам сказал: «Я вернусь завтра».",
    "Sí.",
    "Tu barca se llama Garza.",
    "Tengo cerveza, hidromiel y sidra.",
    "Anoto todo en mi diario.",
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
    # lists, brackets, figures, quotations and labels of people's own
    "Ale is 3 copper (4 on feast days), bread 1.",
    "Prices: ale 3c | stew 5c | bed 10c",
    "Three doors:\na) red\nb) green\nc) blue",
    "I sell:\n\U0001f37a ale\n\U0001f35e bread",
    "Step 1: boil water.\nStep 2: add salt.",
    "They are three:\nStranger: tall\nGuest: small",
    "You can:\nsit, stand, or leave.",
    "My thoughts: he looks hungry.",
    "The oath:\nI serve the sea.",
    "She would say no.\nI would say yes.",
    'Cora smiled and said, "Come in," so I went.',
    "I say no to that.",
    "He owes me 5/10 of it, or so he says.",
    "To be continued, as the bards say.",
    "Meet me at 7:00 (sharp).",
    "Let the AI of the old ship sleep.",
    'He would reply: "Never."',
    "As Cora says: never trust a calm sea.",
    'I ask: who? "Me," said he.',
    "<north> is what the tag reads.",
    "My guidelines? Pay first.",
    "They produce content cows.",
    "Bram says you owe him.",
    "Je ne peux pas r\u00e9pondre, demande \u00e0 Bram.",
    "Let me know if he comes.",
    "Go north. [It is marked on the map.] Then east.",
)
# What models put round their words: `S` is all that is said of each.
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
    "%\nYou: nice",
    "%\n**Bram:** nice",
    "%\n<Bram> nice",
    "% I am just an AI.",
    "% [END]",
    "% [/Aria]",
    "[12:34] Aria: %",
    "Aria [o7.x]: %",
    "assistant: %",
    "AI: %",
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
    # notes in brackets and on lines of their own
    "%\n\n*(OOC: hope that's fine!)*",
    "[OOC: sure thing!] %",
    "%\n\n-- OOC: ready when you are",
    "%\n\n\uff08OOC\uff1a\u8981\u7ee7\u7eed\u5417\uff1f\uff09",
    "%\n\n(P.S. I keep it short, as requested.)",
    "%\n\n(To be continued...)",
    "%\n\n[End Scene]",
    "%\n\n*fade to black*",
    "%\n\n[You receive: 1x Bowl of Stew]",
    "%\n\n[Next actions: eat | leave | ask]",
    "%\n\nThis reply stays true to Aria's character.",
    "%\n\nI kept the response short.",
    "%\n\nI hope this helps! Let me know if you need anything else.",
    "% (= Der Eintopf ist hei\u00df.)",
    "%\n\n[DE] Der Eintopf ist hei\u00df.",
    "%\n<div class='status'>HP: 20</div>",
    "%\n\n\u2764\ufe0f 85/100 | \U0001f37a 3",
    "%\n\n| Stat | Value |\n|---|---|\n| Mood | warm |",
    "%\n\nRelationship: Friendly (+5)",
    "%\n\n(Affection +1)",
    "%\n\n\U0001f4ad *He looks hungry.*",
    "%\n\nAria's thoughts: He looks hungry.",
    "%\n\nQuest updated: Find the tin soldier",
    # leads, and replies to choose from
    "As requested, here is a short reply from Aria:\n\n%",
    'Certainly! Here\'s how Aria might respond:\n\n"%"',
    'Aria would likely respond with something like: "%"',
    "Based on the context, Aria's response would be:\n\n%",
    "Got it! I'm Aria now.\n\n%",
    "**Location:** The bar\n**Time:** Evening\n\n%",
    "[The bar | Evening]\n\n%",
    "Narrator: The fire crackles.\n\nAria: %",
    "INT. TAVERN - NIGHT\n\nAria: %",
    "ARIA\n(smiling)\n%",
    'Option 1: "%"\nOption 2: "No stew."',
    '1. "%"\n2. "No stew."',
    '"%"\n\nOr:\n\n"No stew."',
    # choices
    "%\n\nWhat will you do?\n> Eat\n> Leave",
    "%\n\na) Eat\nb) Leave",
    "%\n\n**1.** Eat\n**2.** Leave",
    "%\n\n\u2460 Eat\n\u2461 Leave",
    "%\n\nYou can:\n- Eat\n- Leave",
    '%\n\n**Suggested replies:**\n- "Thanks."\n- "No."',
    "% Do you: (1) eat, or (2) leave?",
    # other people's lines, and what is told of oneself
    "%\n\n{{user}}: nice",
    "%\n\nBram (hungry): I'll take one.",
    '%\n\nBram - "I\'ll take one."',
    '%\n\nBram nods and sits down. "Thank you," he says.',
    "%\n\nGuest: I'll take one.",
    "%\n\nBram:Thanks!",
    "%\n\n(Bram) Thanks!",
    '%\n\n"Thanks!" Bram says.',
    '%\n\nYou say, "Thanks!"',
    "%\n\nDM: Roll for initiative.",
    "Speaking as Aria: %",
    "[As Aria] %",
    "% OOC: brb",
    "%\n\n* * *\n\nLater, Bram leaves.",
    "%\n(French: Le rago\u00fbt est chaud.)",
    "% [Trust +2]",
    "%\n\n*Trust increased by 1*",
    "%\n\nuser: thanks",
    '{"character": "Aria", "line": "%"}',
    "%\n\nHealth: \u2588\u2588\u2588\u2591\u2591 80",
    "HP: 20/20 | Mood: warm\n\n%",
    "%\n\n[1] Eat\n[2] Leave",
    "%\n\nType 1 to eat, 2 to leave.",
    "%\n\nLet me know if you'd like another tone!",
    "% [smiles]",
    "% (smiles)",
    "/say %",
    "emote nods.\nsay %",
    'I smile warmly. "%"',
    'I say, "%"',
    "Aria nods.\n\n'%'",
    "Aria l\u00e4chelt. \u201e%\u201c",
)
# Nothing of these is said.
NOTHING = (
    "As an AI language model, I cannot eat, but the stew is hot.",
    "I'm an AI assistant, so I do not have a stew.",
    "I am a large language model trained by Google.",
    "I'm sorry, but I can't continue this roleplay.",
    "I don't have any information about Bram in the text game you are playing.",
    "I am Aria, a robot designed to provide information and assistance in this place.",
    "I'm Claude, an AI assistant made by Anthropic.",
    "Being an AI, I have no stew.",
    "This goes against my guidelines.",
    "Ich kann diese Anfrage nicht erf\u00fcllen.",
    "\u62b1\u6b49\uff0c\u6211\u65e0\u6cd5\u6ee1\u8db3\u8be5\u8bf7\u6c42\u3002",
    "I'm sorry, but I cannot fulfill this request.",
    "I don't feel comfortable continuing this roleplay.",
    "En tant qu'assistant IA, je n'ai pas de rago\u00fbt.",
    "Como asistente de IA, no tengo estofado.",
    "Come assistente AI, non ho emozioni.",
    "Jestem asystentem AI i nie jem.",
    "\uc800\ub294 \uc778\uacf5\uc9c0\ub2a5 \uc5b4\uc2dc\uc2a4\ud134\ud2b8\uc785\ub2c8\ub2e4.",
    "Som en AI-spr\u00e5kmodell kan jag inte \u00e4ta.",
)


def spoken(text, around=AROUND):
    """What of a model's text is said."""
    answer = read(text, TOOLS)
    speech = told_apart(answer.text, [around.own])[0]
    said = guarded(clean_reply(speech, [around.own]), around).text
    return said or (S if S in str(answer.calls) else "")


class TestReplies(unittest.TestCase):
    def test_only_the_sound_beginning_is_said(self):
        """Of what small models really write."""
        for text, said in CUT:
            with self.subTest(text):
                whole = text.replace("%", S)
                self.assertEqual(spoken(whole), said)
                self.assertIn(spoken(whole, replace(AROUND, is_small=True)), {said, ""})

    def test_words_alone_are_said(self):
        """Labels, wrappers, notes, figures, menus and other people's lines are not."""
        for text in (*SAID, *NOTHING):
            with self.subTest(text):
                self.assertEqual(spoken(text.replace("%", S)), "" if text in NOTHING else S)

    def test_what_people_say_passes_whole(self):
        """From any model that may say so much."""
        for text in SOUND:
            with self.subTest(text):
                self.assertEqual(spoken(text), text)

    def test_what_was_broken_off(self):
        """In mid-word: the whole sentences before, else all but the torn word."""
        torn = replace(AROUND, is_cut_off=True)
        for text, said in (
            (f"{S} The bread is fre", S),
            ("Der Eintopf ist heiß. Das Bro", DE),
            ("シチューは熱いですよ。パン", JA),
            ("Похлёбка горячая. Хле", "Похлёбка горячая."),
            ("El guiso está caliente. El pa", ES),
        ):
            with self.subTest(text):
                self.assertEqual(spoken(text, torn), said)
