# ruff: noqa: E501, SIM905
"""What the patrons of the benchmarks say: pools of values, and statements and questions.

In a statement or question ``{P}`` is whom it is about, ``{X}`` the answer, ``{Y}`` a second
thing that both name. ``self`` statements are told by P, ``other`` ones by somebody else. Each
relation is told and asked in two sets of words, ``one`` and ``two``.
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

# name -> about ("player" or "person"), x, y pools, and the two sets of phrases.
RELATIONS = {
    "birthplace": {
        "x": "town",
        "one": {
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
        "two": {
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
        "one": {
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
        "two": {
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
        "one": {
            "self": ["I work as a {X}, six days a week.", "I'm a {X} by trade."],
            "other": ["{P} is a {X}, and a good one.", "{P} earns a living as a {X}."],
            "ask": ["What does {P} do for a living?", "What's {P}'s trade?", "What is {P}'s job?"],
        },
        "two": {
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
        "one": {
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
        "two": {
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
        "one": {
            "self": ["My {Y} works as a {X} up north.", "My {Y} is a {X}."],
            "other": ["{P}'s {Y} is a {X}, so I hear.", "{P}'s {Y} found work as a {X}."],
            "ask": ["What does {P}'s {Y} do for a living?", "What is the trade of {P}'s {Y}?"],
        },
        "two": {
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
        "one": {
            "self": [
                "My {Y} is called {X}.",
                "I've got a {Y} named {X}.",
                "I keep a {Y}. She answers to {X}.",
            ],
            "other": ["{P}'s {Y} is called {X}.", "{P} has a {Y} by the name of {X}."],
            "ask": ["What's {P}'s {Y} called?", "What's the name of {P}'s {Y}?"],
        },
        "two": {
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
        "one": {
            "self": ["My favourite colour is {X}.", "I've always loved {X} best of all colours."],
            "other": [
                "{P}'s favourite colour is {X}.",
                "{P} likes the colour {X} more than any other.",
            ],
            "ask": ["What's {P}'s favourite colour?", "Which colour does {P} like best?"],
        },
        "two": {
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
        "one": {
            "self": [
                "My favourite drink is {X}.",
                "Nothing beats a mug of {X}, if you ask me.",
                "I'm rather partial to {X}.",
            ],
            "other": ["{P}'s favourite drink is {X}.", "{P} never drinks anything but {X}."],
            "ask": ["What does {P} like to drink?", "What's {P}'s favourite drink?"],
        },
        "two": {
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
        "one": {
            "self": ["I can't stand {X}.", "I hate {X}, always have."],
            "other": ["{P} can't abide {X}.", "{P} really dislikes {X}."],
            "ask": ["What food does {P} hate?", "Which dish can {P} not stand?"],
        },
        "two": {
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
        "one": {
            "self": ["I'm terrified of {X}.", "I've been scared of {X} since I was small."],
            "other": ["{P} is afraid of {X}.", "{P} is scared to death of {X}."],
            "ask": ["What is {P} afraid of?", "What frightens {P}?"],
        },
        "two": {
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
        "one": {
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
        "two": {
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
        "one": {
            "self": ["I owe {Y} {X}.", "I still owe {X} to {Y}."],
            "other": ["{P} owes {Y} {X}.", "{P} still has to pay {Y} back {X}."],
            "ask": ["How much does {P} owe {Y}?", "How much money does {P} owe to {Y}?"],
        },
        "two": {
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
        "one": {
            "self": ["I keep {X} {Y} behind the house.", "I've got {X} {Y} now."],
            "other": ["{P} owns {X} {Y}.", "{P} has {X} {Y}, and they smell."],
            "ask": ["How many {Y} does {P} have?", "How many {Y} does {P} own?"],
        },
        "two": {
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
        "one": {
            "self": ["I play the {X}, badly.", "On feast days I play the {X}."],
            "other": ["{P} plays the {X}.", "{P} is learning to play the {X}."],
            "ask": ["What instrument does {P} play?", "Which instrument can {P} play?"],
        },
        "two": {
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
        "one": {
            "self": ["I fight with a {X}.", "My weapon is a {X}."],
            "other": ["{P} carries a {X}.", "{P} always fights with a {X}."],
            "ask": ["What weapon does {P} use?", "What does {P} fight with?"],
        },
        "two": {
            "self": ["I never travel without my {X}.", "In a scrap I trust my {X} above all."],
            "other": ["{P} swings a {X} like nobody's business.", "A {X} hangs from {P}'s belt."],
            "ask": ["What is {P} armed with?", "Which weapon does {P} wield?"],
        },
    },
    "birthday": {
        "x": "month",
        "one": {
            "self": ["My birthday is in {X}.", "I turn forty in {X}."],
            "other": ["{P}'s birthday is in {X}.", "{P} was born in the month of {X}."],
            "ask": ["When is {P}'s birthday?", "In which month is {P}'s birthday?"],
        },
        "two": {
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
        "one": {
            "other": ["The {Y} leaves at {X}.", "The {Y} sets off at {X} sharp."],
            "ask": ["When does the {Y} leave?", "What time does the {Y} depart?"],
        },
        "two": {
            "other": [
                "If you want the {Y}, be on the quay by {X}, that's when it goes.",
                "They say the {Y} departs at {X}, rain or shine.",
            ],
            "ask": ["At what hour does the {Y} set out?", "When's the {Y} due to go?"],
        },
    },
    "allergy": {
        "x": "allergy",
        "one": {
            "self": ["I'm allergic to {X}.", "If I touch {X}, I break out in a rash."],
            "other": ["{P} is allergic to {X}.", "{X} make {P} sneeze something awful."],
            "ask": ["What is {P} allergic to?", "What gives {P} a rash?"],
        },
        "two": {
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
        "one": {
            "self": ["My boat is called the {X}.", "I sail on the {X}."],
            "other": ["{P}'s ship is the {X}.", "{P} sails a boat called the {X}."],
            "ask": ["What's {P}'s boat called?", "What's the name of {P}'s ship?"],
        },
        "two": {
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
        "one": {
            "self": ["I pray to {X} every morning.", "I worship {X}, like my mother did."],
            "other": ["{P} worships {X}.", "{P} prays to {X}."],
            "ask": ["Which god does {P} worship?", "Whom does {P} pray to?"],
        },
        "two": {
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
        "one": {
            "self": ["My {Y} is on {X}.", "I opened a {Y} on {X}."],
            "other": ["{P}'s {Y} is on {X}.", "{P} runs a {Y} on {X}."],
            "ask": ["Where is {P}'s {Y}?", "On which street is {P}'s {Y}?"],
        },
        "two": {
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
        "one": {
            "self": ["I'm married to {X}.", "I married {X} last spring."],
            "other": ["{P} married {X} last spring.", "{P} is married to {X}."],
            "ask": ["Who is {P} married to?", "Who did {P} marry?"],
        },
        "two": {
            "self": ["{X} and I tied the knot in the old chapel.", "I took {X} to be my spouse."],
            "other": ["{P} and {X} were wed at harvest time.", "{P} is {X}'s spouse."],
            "ask": ["Who's {P}'s spouse?", "Whom did {P} wed?"],
        },
    },
    "teacher": {
        "x": "person",
        "y": "instrument",
        "one": {
            "self": ["{X} taught me the {Y}.", "I learned the {Y} from {X}."],
            "other": ["{X} taught {P} the {Y}.", "{P} learned the {Y} from {X}."],
            "ask": ["Who taught {P} the {Y}?", "Who did {P} learn the {Y} from?"],
        },
        "two": {
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
        "one": {
            "self": ["I paid {X} for my {Y}.", "My {Y} cost me {X}."],
            "other": ["{P} paid {X} for a {Y}.", "{P} bought a {Y} for {X}."],
            "ask": ["How much did {P} pay for the {Y}?", "What did {P}'s {Y} cost?"],
        },
        "two": {
            "self": ["That {Y} of mine set me back {X}.", "I got my {Y} for {X} at the fair."],
            "other": ["{P} parted with {X} to get that {Y}.", "A {Y} was sold to {P} for {X}."],
            "ask": ["What was the price of {P}'s {Y}?", "How much did the {Y} set {P} back?"],
        },
    },
    "inherit": {
        "x": "kin",
        "y": "thing",
        "one": {
            "self": ["I got my {Y} from my {X}.", "My {X} gave me the {Y}."],
            "other": ["{P} got the {Y} from a {X}.", "{P} inherited the {Y} from a {X}."],
            "ask": ["Who gave {P} the {Y}?", "Who did {P} get the {Y} from?"],
        },
        "two": {
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
        "one": {
            "self": [
                "I'm leaving for {X} next week.",
                "I plan to travel to {X} after the harvest.",
            ],
            "other": ["{P} is heading to {X} soon.", "{P} sets off for {X} in the morning."],
            "ask": ["Where is {P} going?", "Where does {P} plan to travel?"],
        },
        "two": {
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
        "one": {
            "self": ["I won {X} in the {Y}.", "At the fair I won {X} in the {Y}."],
            "other": ["{P} won {X} in the {Y}.", "{P} took first place in the {Y} and got {X}."],
            "ask": ["What did {P} win in the {Y}?", "What did {P} win at the {Y}?"],
        },
        "two": {
            "self": ["For winning the {Y} they handed me {X}.", "My reward for the {Y} was {X}."],
            "other": ["{X} went to {P} as the prize of the {Y}.", "The {Y} earned {P} {X}."],
            "ask": ["What prize did {P} get in the {Y}?", "What was {P}'s prize for the {Y}?"],
        },
    },
    "illness": {
        "x": "illness",
        "one": {
            "self": ["I've been laid up with {X}.", "I'm suffering from {X} again."],
            "other": ["{P} is sick with {X}.", "{P} is suffering from {X}."],
            "ask": ["What is {P} suffering from?", "What illness does {P} have?"],
        },
        "two": {
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
        "one": {
            "other": [
                "The password for the {Y} is {X}.",
                "To get into the {Y} at night you have to say {X}, that's the password.",
            ],
            "ask": ["What's the password for the {Y}?", "What password opens the {Y}?"],
        },
        "two": {
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
        "one": {
            "other": ["The market in {Y} is on {X}.", "In {Y} they hold the market every {X}."],
            "ask": ["On which day is the market in {Y}?", "When is market day in {Y}?"],
        },
        "two": {
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
