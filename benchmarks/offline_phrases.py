# ruff: noqa: E501, SIM905
"""What the players of `offline_model.py` say: pools of values, and statements and questions.

In a statement or question ``{P}`` is whom it is about, ``{X}`` the answer, ``{Y}`` a second
thing that both name. ``self`` statements are told by P, ``other`` ones by somebody else.
The rules were written looking at ``tuning``. ``seen`` and ``held_out`` (`FRESH`, other relations
and other shapes) were each measured once before they were looked at; docs/offline.md has both
figures.
"""

POOLS = {
    "person": "Tomas Wren Marla Odo Pell Sabine Corin Hedda Jory Lisbet Garrick Nell Osric Petra Rowan Tilda Ulf Vesna Wystan Yara Bram Elsbeth Fenn Isolde Kester Maud Norbert Quill Ragna Thessaly".split(),
    "town": "Dunmere|Oakhollow|Saltmarsh|Greywater|Thornwick|Highmoor|Brackenford|Kestrel Bay|Ashby|Windle|Northolt|Marrowgate|Silverfen|Pinecroft|Ravenscar".split(
        "|"
    ),
    "trade": "blacksmith|baker|cooper|tanner|weaver|shepherd|ferryman|thatcher|locksmith|apothecary|bookbinder|falconer|miller|cartographer|glassblower".split(
        "|"
    ),
    "colour": "blue red green yellow purple scarlet turquoise grey orange violet".split(),
    "drink": "cider|mead|plum brandy|elderberry wine|ginger ale|peppermint tea|goat's milk|dark stout".split(
        "|"
    ),
    "food": "mushroom pie|smoked eel|honey cakes|leek soup|roast duck|pickled herring|blackberry tart|onion bread".split(
        "|"
    ),
    "fear": "spiders|thunder|deep water|geese|heights|the dark|snakes|graveyards".split("|"),
    "animal": "goats|hens|pigs|sheep|ducks|rabbits|mules|geese".split("|"),
    "pet": "dog|cat|horse|parrot|ferret|raven|donkey|tortoise".split("|"),
    "petname": "Biscuit Thunder Pepper Mossy Duchess Bramble Rascal Juniper Soot Truffle Nettle Clover".split(),
    "thing": "silver key|brass compass|old map|emerald brooch|bone whistle|red ledger|spare lantern|love letters|crystal flask|copper bell|wedding ring|prayer book".split(
        "|"
    ),
    "spot": "under the loose floorboard|behind the chimney|in the hollow oak|beneath the third stair|inside the grandfather clock|under the millstone|in a barrel of oats|behind the altar|at the bottom of the well|in the hayloft".split(
        "|"
    ),
    "number": "three four five six seven eight nine eleven twelve fourteen seventeen twenty".split(),
    "coins": "twelve silver|thirty copper|five gold crowns|forty pennies|eight florins|sixty silver|nine ducats|two gold pieces".split(
        "|"
    ),
    "instrument": "fiddle lute harp flute drum bagpipes hurdy-gurdy dulcimer".split(),
    "weapon": "longbow|war hammer|halberd|crossbow|rapier|quarterstaff|battle axe|sling".split("|"),
    "month": "January|March|April|June|July|September|October|November".split("|"),
    "day": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    "time": "dawn|noon|midnight|sunset|first light|six o'clock".split("|"),
    "vessel": "ferry|grain barge|mail coach|night boat|fishing fleet|salt wagon".split("|"),
    "allergy": "strawberries|walnuts|shellfish|cat hair|bee stings|fresh milk".split("|"),
    "ship": "Salty Maiden|Grey Gull|Morning Star|Drunken Heron|Queen of Eels|Windchaser".split("|"),
    "god": "Veshna|Old Tamar|Luthiel|Orrin|the Moon Mother|Kaldur".split("|"),
    "shopkind": "bakery|forge|bookshop|brewery|tannery|apothecary shop".split("|"),
    "street": "Candle Street|Fishbone Alley|Tanner's Row|Lantern Lane|Crooked Way|Barrel Street".split(
        "|"
    ),
    "illness": "marsh fever|a broken ankle|the shaking cough|a bad tooth|frostbite|gout".split("|"),
    "prize": "a silver cup|a fat goose|a barrel of ale|a new saddle|a gilded horn|a bolt of silk".split(
        "|"
    ),
    "contest": "archery contest|pie contest|horse race|wrestling match|fiddle contest|boat race".split(
        "|"
    ),
    "password": "nightjar|copper moon|herring|seven stars|old boots|thistledown".split("|"),
    "metal": "copper bronze iron silver pewter brass".split(),
    "thing2": "great bell|statue of the queen|temple gate|market cross|mayor's chain".split("|"),
    "deep": "old well|mill pond|north shaft|castle cistern".split("|"),
    "building": "watchtower|stone bridge|granary|lighthouse|chapel|town hall".split("|"),
    "nick": "Lefty|the Badger|Old Boots|Squint|the Duke|Copperhead".split("|"),
    "tongue": "Elvish|Dwarvish|Norrish|Old Valean|Goblin".split("|"),
    "haircolour": "red|black|chestnut|grey|blonde|ginger".split("|"),
    "collectable": "buttons|sea shells|old coins|bird feathers|teapots|thimbles".split("|"),
    "wish": "see the ocean|own a vineyard|learn to read|build a boat|fly a kite from the castle".split(
        "|"
    ),
    "body": "knee|shoulder|left arm|ankle|elbow|right hand".split("|"),
    "kin": "sister brother uncle aunt cousin nephew grandmother daughter".split(),
}

# name -> about ("player" or "person"), x, y pools, and the phrases of the two halves.
RELATIONS = {
    "birthplace": {
        "x": "town",
        "tuning": {
            "self": [
                "I was born in {X}, would you believe it.",
                "My folks hail from {X}, and so do I.",
                "I grew up in {X}, back before the war.",
            ],
            "other": [
                "{P} was born in {X}, you know.",
                "Did I say? {P} comes from {X} originally.",
                "Folk say {P} grew up over in {X}.",
            ],
            "ask": [
                "Where was {P} born?",
                "Which town does {P} come from?",
                "Where did {P} grow up?",
            ],
        },
        "seen": {
            "self": [
                "I first saw daylight in {X}, poor as mice we were, for I was born there.",
                "I'm a {X} native, in case my accent didn't give it away.",
            ],
            "other": [
                "That {P} is from {X}, judging by the boots.",
                "As for {P}, {X} is the birthplace, so the priest told me.",
            ],
            "ask": [
                "What's {P}'s hometown?",
                "Can you tell me where {P} is originally from?",
                "What is the birthplace of {P}?",
            ],
        },
    },
    "residence": {
        "x": "town",
        "tuning": {
            "self": [
                "These days I live in {X}.",
                "I've got a little cottage just outside {X} now.",
            ],
            "other": ["{P} lives over in {X} these days.", "{P} moved to {X} last winter."],
            "ask": [
                "Where does {P} live?",
                "In which town does {P} reside now?",
                "Where has {P} settled?",
            ],
        },
        "seen": {
            "self": [
                "Since the flood I've been staying in {X} with my boots by the fire.",
                "{X} is where I make my home.",
            ],
            "other": [
                "{P} has settled down in {X}, of all places.",
                "If you're looking for {P}, try {X}, that's where the house is.",
            ],
            "ask": [
                "Where's {P}'s home?",
                "Whereabouts does {P} dwell?",
                "What town is {P} living in?",
            ],
        },
    },
    "trade": {
        "x": "trade",
        "tuning": {
            "self": ["I work as a {X}, six days a week.", "I'm a {X} by trade."],
            "other": ["{P} is a {X}, and a good one.", "{P} earns a living as a {X}."],
            "ask": ["What does {P} do for a living?", "What's {P}'s trade?", "What is {P}'s job?"],
        },
        "seen": {
            "self": [
                "They apprenticed me young, and I've been a {X} ever since.",
                "Being a {X} pays my bills, just about.",
            ],
            "other": [
                "You'd never guess, but {P} makes a living as a {X}.",
                "{P}, who is a {X}, charges far too much.",
            ],
            "ask": [
                "How does {P} earn a crust?",
                "What sort of work does {P} do?",
                "What profession does {P} follow?",
            ],
        },
    },
    "kin_name": {
        "x": "person",
        "y": "kin",
        "tuning": {
            "self": [
                "My {Y} is called {X}.",
                "I have a {Y} named {X}.",
                "My {Y} {X} is coming to visit.",
            ],
            "other": [
                "{P}'s {Y} is called {X}.",
                "I met {P}'s {Y} yesterday. The name is {X}, I think.",
            ],
            "ask": [
                "What's {P}'s {Y} called?",
                "Who is {P}'s {Y}?",
                "What is the name of {P}'s {Y}?",
            ],
        },
        "seen": {
            "self": [
                "There's a {Y} of mine, {X}, who talks even more than I do.",
                "You should meet {X}, that's my {Y}.",
            ],
            "other": ["{X} is {P}'s {Y}, in case you wondered.", "{P} has a {Y} who goes by {X}."],
            "ask": ["By what name does {P}'s {Y} go?", "Do you remember the name of {P}'s {Y}?"],
        },
    },
    "kin_trade": {
        "x": "trade",
        "y": "kin",
        "tuning": {
            "self": ["My {Y} works as a {X} up north.", "My {Y} is a {X}."],
            "other": ["{P}'s {Y} is a {X}, so I hear.", "{P}'s {Y} found work as a {X}."],
            "ask": ["What does {P}'s {Y} do for a living?", "What is the trade of {P}'s {Y}?"],
        },
        "seen": {
            "self": [
                "I've a {Y} who earns good money as a {X}.",
                "It's my {Y} that's the {X} in our family.",
            ],
            "other": [
                "The {Y} of {P} has become a {X}.",
                "{P} told me his {Y} is employed as a {X}.",
            ],
            "ask": ["What job does {P}'s {Y} have?", "How does {P}'s {Y} make money?"],
        },
    },
    "pet_name": {
        "x": "petname",
        "y": "pet",
        "tuning": {
            "self": [
                "My {Y} is called {X}.",
                "I've got a {Y} named {X}.",
                "I keep a {Y}. She answers to {X}.",
            ],
            "other": ["{P}'s {Y} is called {X}.", "{P} has a {Y} by the name of {X}."],
            "ask": ["What's {P}'s {Y} called?", "What's the name of {P}'s {Y}?"],
        },
        "seen": {
            "self": [
                "I named my {Y} {X} after my granny.",
                "{X}, my old {Y}, snores like a bellows.",
            ],
            "other": [
                "{P} calls that {Y} of hers {X}.",
                "That {Y} belonging to {P}? {X}, it's called.",
            ],
            "ask": ["How does {P} call the {Y}?", "What name did {P} give the {Y}?"],
        },
    },
    "fav_colour": {
        "x": "colour",
        "tuning": {
            "self": ["My favourite colour is {X}.", "I've always loved {X} best of all colours."],
            "other": [
                "{P}'s favourite colour is {X}.",
                "{P} likes the colour {X} more than any other.",
            ],
            "ask": ["What's {P}'s favourite colour?", "Which colour does {P} like best?"],
        },
        "seen": {
            "self": [
                "Of all the colours, {X} is the one I'm fondest of.",
                "Give me {X} any day, no other colour pleases me so.",
            ],
            "other": [
                "{P} is mad about the colour {X}.",
                "For {P} there's only one colour, and that's {X}.",
            ],
            "ask": ["What color does {P} prefer?", "Which shade is {P} fondest of?"],
        },
    },
    "fav_drink": {
        "x": "drink",
        "tuning": {
            "self": [
                "My favourite drink is {X}.",
                "Nothing beats a mug of {X}, if you ask me.",
                "I'm rather partial to {X}.",
            ],
            "other": ["{P}'s favourite drink is {X}.", "{P} never drinks anything but {X}."],
            "ask": ["What does {P} like to drink?", "What's {P}'s favourite drink?"],
        },
        "seen": {
            "self": [
                "Pour me {X} and I'm a happy soul, it's my usual drink.",
                "I can't resist a cup of {X}.",
            ],
            "other": [
                "When {P} comes in, pour {X}, it's the preferred tipple.",
                "{P} swears by {X} after a long day.",
            ],
            "ask": [
                "Which drink does {P} prefer?",
                "What would {P} order at the bar?",
                "What's {P}'s drink of choice?",
            ],
        },
    },
    "hates_food": {
        "x": "food",
        "tuning": {
            "self": ["I can't stand {X}.", "I hate {X}, always have."],
            "other": ["{P} can't abide {X}.", "{P} really dislikes {X}."],
            "ask": ["What food does {P} hate?", "Which dish can {P} not stand?"],
        },
        "seen": {
            "self": [
                "The mere smell of {X} turns my stomach.",
                "Keep that {X} away from me, I loathe it.",
            ],
            "other": [
                "Don't serve {P} any {X}, it's loathed in that house.",
                "{P} detests {X} with a passion.",
            ],
            "ask": ["What dish does {P} detest?", "What can't {P} stand to eat?"],
        },
    },
    "fear": {
        "x": "fear",
        "tuning": {
            "self": ["I'm terrified of {X}.", "I've been scared of {X} since I was small."],
            "other": ["{P} is afraid of {X}.", "{P} is scared to death of {X}."],
            "ask": ["What is {P} afraid of?", "What frightens {P}?"],
        },
        "seen": {
            "self": [
                "Nothing makes me tremble like {X}.",
                "I don't mind ghosts, but {X}? Those give me the shivers, I fear them.",
            ],
            "other": [
                "{X} frighten {P} more than any sword.",
                "{P} has a dread of {X}, poor soul.",
            ],
            "ask": [
                "What does {P} fear most?",
                "What scares {P}?",
                "What is {P} so frightened of?",
            ],
        },
    },
    "hidden": {
        "x": "spot",
        "y": "thing",
        "about": "player",
        "tuning": {
            "self": [
                "I hid the {Y} {X}.",
                "The {Y} is {X}, I put it there myself.",
                "Don't tell anyone, but I stashed my {Y} {X}.",
            ],
            "other": ["{P} hid the {Y} {X}.", "{P} keeps the {Y} {X}."],
            "ask": [
                "Where did {P} hide the {Y}?",
                "Where is {P}'s {Y}?",
                "Where does {P} keep the {Y}?",
            ],
        },
        "seen": {
            "self": [
                "{X} is where you'd find my {Y}, should anything befall me.",
                "Before I left I tucked my {Y} away {X}.",
            ],
            "other": ["I saw {P} slip the {Y} away {X}.", "The {Y} was put {X} by {P}."],
            "ask": [
                "Where can {P}'s {Y} be found?",
                "Where has {P} stashed the {Y}?",
                "Where might I find the {Y} that {P} hid?",
            ],
        },
    },
    "debt": {
        "x": "coins",
        "y": "person",
        "tuning": {
            "self": ["I owe {Y} {X}.", "I still owe {X} to {Y}."],
            "other": ["{P} owes {Y} {X}.", "{P} still has to pay {Y} back {X}."],
            "ask": ["How much does {P} owe {Y}?", "How much money does {P} owe to {Y}?"],
        },
        "seen": {
            "self": [
                "I'm {X} in debt to {Y}, heaven help me.",
                "{Y} lent me {X} and wants it back.",
            ],
            "other": [
                "{P} borrowed {X} from {Y} and never paid it back.",
                "There's a debt of {X} that {P} has with {Y}.",
            ],
            "ask": [
                "What's the sum {P} owes {Y}?",
                "How big is {P}'s debt to {Y}?",
                "What does {P} have to pay back to {Y}?",
            ],
        },
    },
    "herd": {
        "x": "number",
        "y": "animal",
        "tuning": {
            "self": ["I keep {X} {Y} behind the house.", "I've got {X} {Y} now."],
            "other": ["{P} owns {X} {Y}.", "{P} has {X} {Y}, and they smell."],
            "ask": ["How many {Y} does {P} have?", "How many {Y} does {P} own?"],
        },
        "seen": {
            "self": [
                "Feeding {X} {Y} every morning is no joke, I tell you, and they're all mine.",
                "My {Y}, {X} of them, got loose again.",
            ],
            "other": ["All {X} of {P}'s {Y} won ribbons.", "There are {X} {Y} on {P}'s farm."],
            "ask": [
                "What number of {Y} does {P} keep?",
                "How many {Y} has {P} got?",
                "How many {Y} are there on {P}'s land?",
            ],
        },
    },
    "instrument": {
        "x": "instrument",
        "tuning": {
            "self": ["I play the {X}, badly.", "On feast days I play the {X}."],
            "other": ["{P} plays the {X}.", "{P} is learning to play the {X}."],
            "ask": ["What instrument does {P} play?", "Which instrument can {P} play?"],
        },
        "seen": {
            "self": [
                "I've been practising the {X} until the neighbours weep.",
                "Give me a {X} and I'll make music all night.",
            ],
            "other": ["You should hear {P} on the {X}.", "{P} made music on a {X} at the wedding."],
            "ask": ["What does {P} make music on?", "What is {P}'s musical instrument?"],
        },
    },
    "weapon": {
        "x": "weapon",
        "tuning": {
            "self": ["I fight with a {X}.", "My weapon is a {X}."],
            "other": ["{P} carries a {X}.", "{P} always fights with a {X}."],
            "ask": ["What weapon does {P} use?", "What does {P} fight with?"],
        },
        "seen": {
            "self": ["I never travel without my {X}.", "In a scrap I trust my {X} above all."],
            "other": ["{P} swings a {X} like nobody's business.", "A {X} hangs from {P}'s belt."],
            "ask": ["What is {P} armed with?", "Which weapon does {P} wield?"],
        },
    },
    "birthday": {
        "x": "month",
        "tuning": {
            "self": ["My birthday is in {X}.", "I turn forty in {X}."],
            "other": ["{P}'s birthday is in {X}.", "{P} was born in the month of {X}."],
            "ask": ["When is {P}'s birthday?", "In which month is {P}'s birthday?"],
        },
        "seen": {
            "self": [
                "Come {X}, I'll be a year older, it's my birthday then.",
                "I celebrate my birthday every {X}.",
            ],
            "other": [
                "We bake a cake for {P}'s birthday each {X}.",
                "{X} is the month of {P}'s birthday.",
            ],
            "ask": ["What month does {P} celebrate a birthday?", "When does {P} have a birthday?"],
        },
    },
    "departure": {
        "x": "time",
        "y": "vessel",
        "about": "world",
        "tuning": {
            "other": ["The {Y} leaves at {X}.", "The {Y} sets off at {X} sharp."],
            "ask": ["When does the {Y} leave?", "What time does the {Y} depart?"],
        },
        "seen": {
            "other": [
                "If you want the {Y}, be on the quay by {X}, that's when it goes.",
                "They say the {Y} departs at {X}, rain or shine.",
            ],
            "ask": ["At what hour does the {Y} set out?", "When's the {Y} due to go?"],
        },
    },
    "allergy": {
        "x": "allergy",
        "tuning": {
            "self": ["I'm allergic to {X}.", "If I touch {X}, I break out in a rash."],
            "other": ["{P} is allergic to {X}.", "{X} make {P} sneeze something awful."],
            "ask": ["What is {P} allergic to?", "What gives {P} a rash?"],
        },
        "seen": {
            "self": [
                "Because of an allergy I have to stay away from {X}.",
                "My face swells up whenever I come near {X}.",
            ],
            "other": ["{P} swells like a toad from {X}.", "{X} would kill {P}; it's an allergy."],
            "ask": ["What allergy does {P} have?", "What must {P} avoid because of an allergy?"],
        },
    },
    "ship": {
        "x": "ship",
        "tuning": {
            "self": ["My boat is called the {X}.", "I sail on the {X}."],
            "other": ["{P}'s ship is the {X}.", "{P} sails a boat called the {X}."],
            "ask": ["What's {P}'s boat called?", "What's the name of {P}'s ship?"],
        },
        "seen": {
            "self": [
                "I christened my boat the {X} and she's never sunk.",
                "The {X} is my ship, all paid for.",
            ],
            "other": [
                "{P} is skipper of a vessel, the {X}.",
                "The {X} belongs to {P}, finest ship on the coast.",
            ],
            "ask": ["Which ship does {P} own?", "What did {P} name the boat?"],
        },
    },
    "god": {
        "x": "god",
        "tuning": {
            "self": ["I pray to {X} every morning.", "I worship {X}, like my mother did."],
            "other": ["{P} worships {X}.", "{P} prays to {X}."],
            "ask": ["Which god does {P} worship?", "Whom does {P} pray to?"],
        },
        "seen": {
            "self": [
                "I keep the faith of {X}.",
                "{X} is the one I light candles for; that's my god.",
            ],
            "other": ["{P} is devoted to {X}.", "{P} kneels before {X} and no other god."],
            "ask": ["What deity does {P} follow?", "To which god does {P} pray?"],
        },
    },
    "shop": {
        "x": "street",
        "y": "shopkind",
        "tuning": {
            "self": ["My {Y} is on {X}.", "I opened a {Y} on {X}."],
            "other": ["{P}'s {Y} is on {X}.", "{P} runs a {Y} on {X}."],
            "ask": ["Where is {P}'s {Y}?", "On which street is {P}'s {Y}?"],
        },
        "seen": {
            "self": ["You'll find my {Y} halfway down {X}.", "I bought the {Y} on {X} last year."],
            "other": [
                "The {Y} that {P} owns stands on {X}.",
                "Go down {X} and you'll see {P}'s {Y}.",
            ],
            "ask": ["Where would I find {P}'s {Y}?", "What street is {P}'s {Y} in?"],
        },
    },
    "marriage": {
        "x": "person",
        "tuning": {
            "self": ["I'm married to {X}.", "I married {X} last spring."],
            "other": ["{P} married {X} last spring.", "{P} is married to {X}."],
            "ask": ["Who is {P} married to?", "Who did {P} marry?"],
        },
        "seen": {
            "self": ["{X} and I tied the knot in the old chapel.", "I took {X} to be my spouse."],
            "other": ["{P} and {X} were wed at harvest time.", "{P} is {X}'s spouse."],
            "ask": ["Who's {P}'s spouse?", "Whom did {P} wed?"],
        },
    },
    "teacher": {
        "x": "person",
        "y": "instrument",
        "tuning": {
            "self": ["{X} taught me the {Y}.", "I learned the {Y} from {X}."],
            "other": ["{X} taught {P} the {Y}.", "{P} learned the {Y} from {X}."],
            "ask": ["Who taught {P} the {Y}?", "Who did {P} learn the {Y} from?"],
        },
        "seen": {
            "self": [
                "It was {X} who showed me how to play the {Y}.",
                "I had {Y} lessons with {X}.",
            ],
            "other": ["{P} was taught the {Y} by {X}.", "{P} studied the {Y} under {X}."],
            "ask": ["From whom did {P} learn the {Y}?", "Who was {P}'s {Y} teacher?"],
        },
    },
    "price": {
        "x": "coins",
        "y": "thing",
        "tuning": {
            "self": ["I paid {X} for my {Y}.", "My {Y} cost me {X}."],
            "other": ["{P} paid {X} for a {Y}.", "{P} bought a {Y} for {X}."],
            "ask": ["How much did {P} pay for the {Y}?", "What did {P}'s {Y} cost?"],
        },
        "seen": {
            "self": ["That {Y} of mine set me back {X}.", "I got my {Y} for {X} at the fair."],
            "other": ["{P} parted with {X} to get that {Y}.", "A {Y} was sold to {P} for {X}."],
            "ask": ["What was the price of {P}'s {Y}?", "How much did the {Y} set {P} back?"],
        },
    },
    "inherit": {
        "x": "kin",
        "y": "thing",
        "tuning": {
            "self": ["I got my {Y} from my {X}.", "My {X} gave me the {Y}."],
            "other": ["{P} got the {Y} from a {X}.", "{P} inherited the {Y} from a {X}."],
            "ask": ["Who gave {P} the {Y}?", "Who did {P} get the {Y} from?"],
        },
        "seen": {
            "self": ["The {Y} was left to me by my {X}.", "This {Y} was a gift from my {X}."],
            "other": [
                "The {Y} was handed down to {P} by a {X}.",
                "It was a {X} who left {P} that {Y}.",
            ],
            "ask": ["From whom did {P} inherit the {Y}?", "Whose gift was {P}'s {Y}?"],
        },
    },
    "plan": {
        "x": "town",
        "tuning": {
            "self": [
                "I'm leaving for {X} next week.",
                "I plan to travel to {X} after the harvest.",
            ],
            "other": ["{P} is heading to {X} soon.", "{P} sets off for {X} in the morning."],
            "ask": ["Where is {P} going?", "Where does {P} plan to travel?"],
        },
        "seen": {
            "self": [
                "As soon as the snow melts, I'm off to {X}.",
                "My next journey takes me to {X}.",
            ],
            "other": ["{P} wants to make the journey to {X}.", "{P} is bound for {X}."],
            "ask": [
                "What's {P}'s destination?",
                "Where is {P} headed?",
                "To which town will {P} journey?",
            ],
        },
    },
    "prize": {
        "x": "prize",
        "y": "contest",
        "tuning": {
            "self": ["I won {X} in the {Y}.", "At the fair I won {X} in the {Y}."],
            "other": ["{P} won {X} in the {Y}.", "{P} took first place in the {Y} and got {X}."],
            "ask": ["What did {P} win in the {Y}?", "What did {P} win at the {Y}?"],
        },
        "seen": {
            "self": ["For winning the {Y} they handed me {X}.", "My reward for the {Y} was {X}."],
            "other": ["{X} went to {P} as the prize of the {Y}.", "The {Y} earned {P} {X}."],
            "ask": ["What prize did {P} get in the {Y}?", "What was {P}'s prize for the {Y}?"],
        },
    },
    "illness": {
        "x": "illness",
        "tuning": {
            "self": ["I've been laid up with {X}.", "I'm suffering from {X} again."],
            "other": ["{P} is sick with {X}.", "{P} is suffering from {X}."],
            "ask": ["What is {P} suffering from?", "What illness does {P} have?"],
        },
        "seen": {
            "self": ["The healer says it's {X} that ails me.", "I came down with {X} on the road."],
            "other": [
                "{P} caught {X} in the fens.",
                "{X} has kept {P} in bed all week, ill as a dog.",
            ],
            "ask": ["What ails {P}?", "What's wrong with {P}?", "What is {P} ill with?"],
        },
    },
    "password": {
        "x": "password",
        "y": "shopkind",
        "about": "world",
        "tuning": {
            "other": [
                "The password for the {Y} is {X}.",
                "To get into the {Y} at night you have to say {X}, that's the password.",
            ],
            "ask": ["What's the password for the {Y}?", "What password opens the {Y}?"],
        },
        "seen": {
            "other": [
                "Whisper {X} at the back door of the {Y}, it's the secret word.",
                "They changed the {Y}'s password to {X}.",
            ],
            "ask": [
                "What is the secret word at the {Y}?",
                "What must I say to be let into the {Y}?",
            ],
        },
    },
    "market": {
        "x": "day",
        "y": "town",
        "about": "world",
        "tuning": {
            "other": ["The market in {Y} is on {X}.", "In {Y} they hold the market every {X}."],
            "ask": ["On which day is the market in {Y}?", "When is market day in {Y}?"],
        },
        "seen": {
            "other": [
                "Every {X} the square at {Y} fills up for the market.",
                "{Y}'s market takes place each {X}.",
            ],
            "ask": [
                "What day of the week does {Y} have its market?",
                "When do they hold the market at {Y}?",
            ],
        },
    },
}

FRESH = {
    "children": {
        "x": "number",
        "held_out": {
            "self": [
                "I've raised {X} children, and every one of them eats like a horse.",
                "We have {X} little ones at home, my wife and I, and I'm tired.",
            ],
            "other": [
                "{P}'s the parent of {X} children, would you credit it?",
                "{P} has {X} kids to feed.",
            ],
            "ask": ["How many children does {P} have?", "How many kids has {P} got?"],
        },
    },
    "age": {
        "x": "number",
        "held_out": {
            "self": [
                "I was {X} years old when the old king died, no, I tell a lie, I'm {X} now.",
                "I'm only {X} years old, whatever they say.",
            ],
            "other": ["{P} must be {X} years old by now.", "{P} turned {X} last week."],
            "ask": ["How old is {P}?", "What's {P}'s age?"],
        },
    },
    "lost": {
        "x": "thing",
        "held_out": {
            "self": [
                "Somewhere on the road I lost my {X}.",
                "My {X} has gone missing, have you seen it?",
                "I can't find my {X} anywhere, it's gone missing.",
            ],
            "other": ["{P} mislaid the {X} at the fair.", "Poor {P} has lost the {X}."],
            "ask": ["What has {P} lost?", "What did {P} lose?", "What's {P} missing?"],
        },
    },
    "stolen": {
        "x": "person",
        "y": "thing",
        "held_out": {
            "self": [
                "It was {X} who pinched my {Y}, I'd bet my boots on it.",
                "{X} made off with my {Y} last night.",
            ],
            "other": ["{X} robbed {P} of the {Y}.", "{P}'s {Y} was stolen by {X}."],
            "ask": [
                "Who stole {P}'s {Y}?",
                "Who took the {Y} from {P}?",
                "Who's the thief of {P}'s {Y}?",
            ],
        },
    },
    "met": {
        "x": "town",
        "y": "person",
        "held_out": {
            "self": [
                "I first ran into {Y} in {X}, years ago.",
                "It was in {X} that I got to know {Y}.",
            ],
            "other": ["{P} met {Y} at a dance in {X}.", "{P} and {Y} became acquainted in {X}."],
            "ask": ["Where did {P} meet {Y}?", "Where did {P} get to know {Y}?"],
        },
    },
    "sold": {
        "x": "person",
        "y": "animal",
        "held_out": {
            "self": ["I sold the {Y} to {X} in the end.", "{X} bought my {Y} off me."],
            "other": ["{P} sold the {Y} to {X} for next to nothing.", "{X} bought {P}'s {Y}."],
            "ask": ["Who bought {P}'s {Y}?", "Whom did {P} sell the {Y} to?"],
        },
    },
    "made_of": {
        "x": "metal",
        "y": "thing2",
        "about": "world",
        "held_out": {
            "other": [
                "The {Y} is made of pure {X}.",
                "They cast the {Y} from {X}, the old folks say.",
            ],
            "ask": ["What is the {Y} made of?", "What metal is the {Y} made from?"],
        },
    },
    "depth": {
        "x": "number",
        "y": "deep",
        "about": "world",
        "held_out": {
            "other": [
                "The {Y} goes down {X} fathoms.",
                "It's {X} fathoms to the bottom of the {Y}.",
                "The {Y} is {X} fathoms deep.",
            ],
            "ask": ["How deep is the {Y}?", "What's the depth of the {Y}?"],
        },
    },
    "builder": {
        "x": "person",
        "y": "building",
        "about": "world",
        "held_out": {
            "other": [
                "The {Y} was put up by {X} after the great fire.",
                "{X} built the {Y} with just two helpers.",
            ],
            "ask": ["Who built the {Y}?", "By whom was the {Y} constructed?"],
        },
    },
    "haunts": {
        "x": "building",
        "about": "person",
        "held_out": {
            "other": [
                "They say the ghost of {P} haunts the {X}.",
                "{P}'s ghost walks the {X} at night.",
            ],
            "ask": ["What does the ghost of {P} haunt?", "Where does {P}'s ghost walk?"],
        },
    },
    "arrival": {
        "x": "day",
        "held_out": {
            "self": ["I got here on {X}, soaked to the bone.", "It was {X} when I arrived."],
            "other": ["{P} turned up on {X} with three trunks.", "{P} gets here on {X}."],
            "ask": [
                "When did {P} arrive?",
                "On what day did {P} get here?",
                "Which day did {P} come?",
            ],
        },
    },
    "enemy": {
        "x": "person",
        "held_out": {
            "self": ["My sworn enemy is {X}.", "There's bad blood between me and {X}."],
            "other": ["{P} has a feud with {X}.", "{P}'s worst enemy? That would be {X}."],
            "ask": ["Who is {P}'s enemy?", "With whom is {P} feuding?", "Who's {P}'s worst enemy?"],
        },
    },
    "friend": {
        "x": "person",
        "held_out": {
            "self": [
                "{X} has been my best friend since we were small.",
                "Nobody's a better friend to me than {X}.",
            ],
            "other": ["{P} and {X} are the best of friends.", "{P}'s closest pal is {X}."],
            "ask": ["Who is {P}'s best friend?", "Who's {P}'s closest companion?"],
        },
    },
    "boss": {
        "x": "person",
        "held_out": {
            "self": [
                "I take my orders from {X}, who's my boss.",
                "I work for {X} down at the docks.",
            ],
            "other": ["{P} works for {X}.", "{P}'s employer is {X}, that old skinflint."],
            "ask": ["Who does {P} work for?", "Who is {P}'s boss?", "Who employs {P}?"],
        },
    },
    "nickname": {
        "x": "nick",
        "held_out": {
            "self": ["Everyone calls me {X}.", "At sea they knew me as {X}."],
            "other": ["{P} is better known as {X}.", "Round here folk call {P} {X}."],
            "ask": [
                "What's {P}'s nickname?",
                "What do people call {P}?",
                "By what nickname is {P} known?",
            ],
        },
    },
    "language": {
        "x": "tongue",
        "held_out": {
            "self": ["I speak {X}, though not well.", "My granny taught me to speak {X}."],
            "other": ["{P} is fluent in {X}.", "{P} speaks {X} like a native."],
            "ask": ["Which language does {P} speak?", "What foreign tongue does {P} know?"],
        },
    },
    "hair": {
        "x": "haircolour",
        "held_out": {
            "self": [
                "My hair was {X} before I shaved it off.",
                "I've got {X} hair under this hat.",
            ],
            "other": ["{P} has {X} hair.", "You'd know {P} by that {X} hair."],
            "ask": ["What colour is {P}'s hair?", "What colour hair does {P} have?"],
        },
    },
    "collects": {
        "x": "collectable",
        "held_out": {
            "self": [
                "I collect {X}, don't laugh.",
                "I've a whole cupboard full of {X} that I've collected.",
            ],
            "other": ["{P} collects {X}.", "{P} hoards {X} like a magpie."],
            "ask": ["What does {P} collect?", "What sort of things does {P} collect?"],
        },
    },
    "dream": {
        "x": "wish",
        "held_out": {
            "self": ["One day I want to {X}.", "My dearest wish is to {X}."],
            "other": ["{P} dreams of it day and night: to {X}.", "{P} hopes to {X} someday."],
            "ask": [
                "What does {P} want to do one day?",
                "What is {P}'s dearest wish?",
                "What does {P} dream of?",
            ],
        },
    },
    "wound": {
        "x": "body",
        "held_out": {
            "self": [
                "I broke my {X} falling off a cart.",
                "A wolf bit me in the {X} when I was young.",
            ],
            "other": ["{P} has an ugly scar on the {X}.", "{P} took an arrow in the {X}."],
            "ask": [
                "Where was {P} hurt?",
                "Where was {P} wounded?",
                "Which part of {P}'s body was injured?",
            ],
        },
    },
    "promise": {
        "x": "thing",
        "y": "person",
        "held_out": {
            "self": [
                "I promised {Y} a {X}.",
                "I gave {Y} my word that there'd be a {X} for the wedding.",
            ],
            "other": ["{P} promised to bring {Y} a {X}.", "{P} swore that {Y} would get a {X}."],
            "ask": ["What did {P} promise {Y}?", "What has {P} promised to {Y}?"],
        },
    },
    "winner": {
        "x": "person",
        "y": "contest",
        "about": "world",
        "held_out": {
            "other": ["{X} came first in the {Y}.", "The {Y} was won by {X}, fair and square."],
            "ask": ["Who won the {Y}?", "Who was the winner of the {Y}?"],
        },
    },
    "residence2": {
        "x": "town",
        "held_out": {
            "self": [
                "We've a room above the chandler's in {X}, that's where I stay.",
                "I pay rent on a shack in {X}.",
            ],
            "other": [
                "You'll have to go to {X} if you want to find {P} at home.",
                "{P} has a farmhouse near {X}.",
            ],
            "ask": ["Where does {P} live?", "Where's {P}'s house?"],
        },
    },
}

CHATTER = [
    "What a night, eh?",
    "This stew needs salt.",
    "Another round over here!",
    "Did you see that dog run across the road?",
    "My feet are killing me.",
    "I could sleep for a week.",
    "Ha! That's a good one.",
    "Anyone up for dice?",
    "It's raining cats and dogs out there.",
    "Shove over, would you?",
    "The fire's going out.",
    "Have you ever seen so much mud?",
    "Right then.",
    "They say the winter will be hard.",
    "Who took my stool?",
]

TAILS = [
    "",
    "",
    "",
    " Anyway.",
    " But enough of that.",
    " Mark my words.",
    " True as I stand here.",
]
LEADS = ["", "", "", "Well, ", "By the way, ", "You know, ", "Truth be told, "]
FRAMES = [
    "{q}",
    "{q}",
    "{q}",
    "Aria, {l}",
    "Do you know, {l}",
    "Say, {l}",
    "Tell me, {l}",
    "{q} I forget.",
]
