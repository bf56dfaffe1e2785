"""The words the offline model knows: relations, kinds of things, and words that carry little.

Written by hand, as text, so that adding a word touches one line. `lexicon` compiles it. In
`RELATIONS` a line is a concept, a colon and its words; several words joined by ``_`` are one
phrase, in which ``*`` stands for any single word; ``~`` marks a word that only hints at it.
In `KINDS` a line is a kind of thing, the words that ask for it in brackets, and its members.
"""

# ruff: noqa: E501
# A line is one concept: broken lines would hide where one ends.

RELATIONS = """
live: have_*_house have_*_farmhouse have_*_cottage have_*_home that_be_where_*_house_be that_be_where_*_home_be find_*_at_home live reside dwell settle inhabit lodge stay abode domicile move moved_to make_*_home ~home ~house ~cottage ~hut ~cabin ~lodging ~room reside_at residence set_up_house quarter ~camp ~address ~bunk ~farm roof_over rent_a_room shack
origin: born hail native birthplace hometown origin is_originally_from come_from came_from hail_from grow_up raised_in brought_up originally is_from was_from be_from are_from am_from originate birth childhood reared_in bred homeland cradle
birthday: birthday birth nameday name_day birthdate ~turn year_older born came_into_the_world
work: line_of_work work job trade profession occupation for_a_living do_to_live earn career craft vocation employ_as employ_at employ_in serve_as apprentice make_*_living livelihood make_*_money make_money earn_money earn_*_crust earn_a_crust pay_*_bill put_food_on_the_table keep_body_and_soul earn_*_keep bring_home bring_in earn_*_bread ~run occupation workplace day_job ply
own: own ~land ~farm ~property have possess belong got keep hold property owner ~carry ~master ~mistress proprietor ~buy ~inherit ~purchase
tend: keep raise tend breed rear look_after care_for mind herd cultivate grow farm
love: love adore sweet_on in_love darling beloved sweetheart smitten fancy heart_belongs_to lost_*_heart court woo crush pine betroth besotted admire carry_a_torch head_over_heels
like: anything_but nothing_but like love enjoy adore fond favourite prefer fancy partial best relish cherish please pour_me any_day nothing_beats can_not_resist can_never_resist soft_spot swear_by weakness preferred mad_about crazy_about keen delight treasure happiest fancy dote appeal lives_for nothing_better treat suits_best there_be_only_one most_beloved closest_to_*_heart dear_to top_choice go_for rather_have above_all of_choice usual beat_all taste
hate: hate dislike loathe detest despise can_not_stand can_not_abide can_not_bear can_not_*_stand can_not_*_abide can_not_*_bear not_stand not_abide not_bear abhor resent never_touch no_time_for turn_*_stomach sick_of revolt disgust loathing grudge makes_*_sick_to put_*_off least_favourite object_to rather_die
fear: fear afraid scare frighten terrify dread spook phobia shiver petrify panic shivers nightmare tremble frightened fright terror scary creep_out give_*_the_creep nervous dares_not run_from horrify shudder quake unnerve wary goose_bumps bring_out_in_a_cold_sweat blood_run_cold
avoid: would_kill can_not_*_eat not_serve avoid shun refuse never_eat never_touch allergic allergy swell rash sneeze hives can_not_eat makes_*_ill makes_*_sick intolerant break_out upset_*_stomach itch steer_clear stay_away react_badly not_go_near not_*_serve never_go_near never_set_foot keep_away keep_clear keep_one_*_distance evade rather_die
allergic: would_kill allergic allergy swell rash sneeze hives makes_*_ill makes_*_sick intolerant break_out upset_*_stomach itch react_badly can_not_eat can_not_*_eat poison
owe: owe debt indebted lend borrow repay pay_back pay_*_back give_*_back owed_to in_debt due ~loan creditor outstanding settle_up in_the_red
lend: lend borrow loan lent_out
give: leave_*_that leave_me leave_us leave_him leave_her give gift present grant hand bestow donate receive hand_over pass_down got_from gave award inherit offer bequeath left_to_* hand_on pass_on given bring
hide: hide bury stash conceal hidden tuck secrete squirrel cache stow hiding_place buried put_away place lie keep put lock_away leave stuff slip wedge hiding_spot hideaway tuck_away store lodge
lie_at: stand sit lie find situate locate hang kept be_found stood rest location whereabouts stay perch spot place rise nestle look_for
store: store keep put leave stow stock pack stack shelve
lose: lose mislay can_not_find misplace drop vanish missing go_missing disappear run_away ran_off stray
find: find discover unearth dig_up come_across stumble_upon turn_up spot uncover happen_upon
travel: travel go head journey set_off set_out voyage bound ~ride ~sail sail_to sail_for ride_to ride_for off_to leave_for visit walk trek make_for destination trip off_to heading journeying bound_for headed go_to wander plan_to_go get_to getting_to
depart: sail sail_for sails_to leave depart set_off set_out go ~sail cast_off start away departure set_sail off head_out pull_out weigh_anchor set_forth
arrive: arrive come reach return get_here due show_up turn_up get_back expect back arrival pull_in roll_in land dock put_in come_in get_in come_home be_back
open: open opening unlock start begin unbar
close: close shut lock_up end finish bar block bar seal impassable cut_off
begin: begin start commence open kick_off hold take_place happen occur fall celebrate held place scheduled
end: end finish stop over conclude run_out
marry: marry wed wedding spouse husband wife betroth engaged marriage bride groom tie_the_knot wedded get_hitched hitch matrimony take_*_wife take_*_husband vow walked_down_the_aisle
die: die dead death pass_away perish drown killed expire fell_ill buried kill succumb lose_*_life end_*_life carried_off took_*_life claim_*_life meet_*_end demise fatal grave doom alive perished late_wife die_of died_of
kill: die_of died_of kill killer murderer slay murder slaughter assassinate slain put_to_death finish_off struck_down took_the_life bring_down cut_down end_the_life
fight: fight battle duel brawl war combat clash fought came_to_blows quarrel
hurt: hurt took_*_arrow take_an_arrow wound injure injury scar break lame maim bite burn damage cut mark sprain limp bad_leg crack fracture snap ache sore throb
ill: ill ail wrong_with matter_with trouble_with catch come_down_with go_down_with down_with in_bed kept_in_bed sick ail disease fever cough poorly plague unwell sickness suffer trouble illness laid_up ailment malady
heal: help_against against good_for works_against heal cure mend treat remedy recover medicine help soothe salve relieve ease get_better clear
teach: teach teacher train learn school tutor instruct pupil mentor apprentice show_*_how taught lesson studied_under coach education train_under student pick_up study
steal: steal thief rob pinch pilfer thief stole theft burgle nick swipe filch snatch made_off rob_of run_off_with culprit thieve lift
sell: sell trade offer peddle vendor seller stock hawk flog deal_in merchant supply
buy: buy purchase acquire pick_up get bought bargain trade_for paid come_by obtain got shop part_with
cost: cost price pay charge worth paid fetch go_for set_*_back sell spend fee value fork_out ask_for toll fare rate expense shell_out bought part_with asking_price bill wage amount sum bid
earn: earn wage pay salary paid make_a_week pays income
call: call name known nickname know_*_as known_as answer_to go_by christen title dub moniker answers_to handle
make: make maker craft create fashion construct produce invent made_by ~build ~forge ~carve ~sew ~brew ~bake ~weave ~knit ~write ~compose ~paint ~hammer ~sculpt ~whittle ~design put_together
build: build construct erect raise put_up
write: write compose pen author scribble written note_down
sing: sing song sung ballad hum chant croon tune
play: play practise ~lesson make_music perform strum fiddle blow music musician musical pluck pipe make_music
wear: wear dress don clad put_on dressed ~carry sport
carry: carry bear bring haul wield hold take fetch cargo freight load laden haul transport bring_back bring_*_back
wield: wield ~use fight_with carry weapon armed swing favour_in_a_fight weapon_of_choice draw bear fight
eat: eat dine devour food munch meal supper breakfast feed diet chew snack dish consume
drink: drink sip swig quaff beverage tipple order guzzle sup_on pour swill gulp glass mug wet_*_whistle poison
cook: cook bake roast boil stew fry prepare
sleep: sleep bed nap slumber doze bedroom kip bunk sleep_in
guard: guard protect watch defend patrol keep_watch look_out sentry keep_an_eye stand_watch stand_guard lookout minds watch_over
see: see saw spot notice glimpse witness seen lay_eyes catch_sight sight
meet: meet met encounter run_into get_to_know come_across introduce rendezvous bump_into meeting acquaint first_saw gather cross_paths
know: know acquaint familiar
want: want some_day dream_of wish desire hope long yearn crave need ambition aim aspire would_love plan goal would_like set_*_heart intend wishing longing look_to
need: need require lack want short_of after in_want
plan: plan intend mean aim hope scheme mind_to
promise: promise give_*_word swear vow pledge oath give_*_word gave_*_word commit undertake
believe: believe think reckon faith
worship: believe_in worship pray god goddess deity follow devote faith revere serve religion temple devout kneel swear_by light_candle
secret: not_tell tell_nobody between_you_and_me keep_*_to_yourself secret private confidential tell_no_one hush keep_quiet
win: win winner reward take_first_place took_first_place come_first victory
bounty: earn_*_a reward bounty offer price_on beat defeat champion prize won triumph come_first take_home victor
beat: beat defeat best overcome outdo win
rule: rule govern lead king queen lord reign command charge in_charge leader boss head run ruler chief master heads_up mayor captain_of oversee manage commander
run: run manage operate keep own oversee charge in_charge tend look_after proprietor take_over take_*_over took_*_over
serve: serve work_for follow obey loyal
study: study read learn research book scholar
read: read reading book tale
speak: speak language tongue fluent talk converse understand talk_to
write_letter: letter message note write send correspond
send: send ship post dispatch deliver
collect: collect gather hoard collection amass save
hunt: hunt track trap stalk shoot catch poach bag game
fish: fish angle catch net trout
plant: plant sow grow seed garden cultivate bed
burn: burn fire blaze flame ablaze ashes burnt set_fire torch go_up_in_flames
fall: collapse topple cave_in come_down came_down give_way gave_way fall fell tumble trip drop slip plunge
sink: sink founder wreck go_down shipwreck lost_at_sea went_to_the_bottom run_aground sunk capsize
break: break smash shatter crack snap ruin broken
repair: repair mend fix patch restore put_right
wait: wait await expect bide
dance: dance jig reel dancer
swim: swim swimmer float
count: count number amount total many sum how_many tally altogether
age: age aged ~old ~young turn years_of_age year_old winter_old summer_old
tall: tall height high foot_tall feet_tall stand
weigh: weigh weight heavy pound stone
distance: far distance mile league away days_ride walk ride_from distant
duration: long last take duration time while span
deep: deep depth fathom
look: look appear resemble seem describe appearance face look_like looks_like looked_like
hair: hair locks braid beard tress mane curl plait hairdo
eye: eye eyed gaze
scar: scar mark cut wound
friend: friend pal companion mate comrade ally buddy chum close_to confidant crony best_friend
enemy: enemy rival foe nemesis feud quarrel hate adversary opponent bad_blood sworn_enemy at_odds
neighbour: neighbour next_door lives_beside
boss: boss employ hire orders_from answer_to report_to in_the_service master employer captain chief foreman mistress works_for work_for
member: member belong guild join order part_of joined company brotherhood society sign_up enlist
debtor: debtor owe borrower
join: join enlist sign_up member enter
leave_behind: abandon desert forsake quit leave
quit: quit give_up stop retire leave cease swore_off
practise: practise train rehearse drill
smell: smell scent stink odour reek perfume whiff
sound: sound noise hear voice
taste: taste flavour savour
luck: luck lucky fortune charm fortunate
dream: dream nightmare vision
cause: cause because reason why due owing result thanks_to blame
use: use employ utilise wield
like_to_do: ~collect ~paint ~whittle ~fish ~hunt ~dance ~sing ~carve ~embroider ~juggle ~brew hobby pastime spare_time leisure free_time off_duty idle_hour evenings when_not_working enjoy amuse
bet: bet wager gamble dice stake
contain: contain hold inside full fill hold_within content packed
lead: lead go run take road path lead_to bring_you reach
near: near close beside next_to by nearby neighbour
haunt: haunt ~walk ghost spirit spectre phantom
guest: guest visitor lodger stay tenant rent_*_room take_in boarder rents_a_room lodge_with lodging_with
child: childhood boyhood girlhood child kid offspring little_ones baby
mother: mother mum mam mama
father: father dad papa
grandmother: grandmother gran grandma granny
grandfather: grandfather grandpa grandad granddad
aunt: aunt auntie
innkeeper: innkeeper barkeep bartender landlord landlady
smith: smith blacksmith
healer: healer doctor physician surgeon
fisher: fisherman fisher
tax_man: tax-collector tax_collector tax_man
rope: rope cord line
bag: bag sack pouch satchel
box: box chest coffer trunk crate strongbox casket
marriage_bond: husband wife spouse
chief: captain commander
indoors: at_home
conditional: if_you_want if_you_need if_you_like
wedding_thing: wedding_ring wedding_band wedding_dress wedding_cake wedding_gift
message: message love_letter note letter word news tidings
password: password passphrase watchword word_to_say secret_word let_into let_in get_into get_in get_past say_to countersign code pass_word say_at_the_door knock
ship: ship boat vessel ~sail ~aboard ~skipper
shop: shop store stall market booth emporium
inn: inn tavern pub alehouse taproom bar ~lantern hostel
blade: sword blade sabre rapier cutlass broadsword
money: money coin cash funds purse
street: street road lane alley way path row
tower: tower turret spire keep
wood: wood forest grove woods thicket copse
river: river stream brook creek waterway
hill: hill mound rise knoll
mountain: mountain peak mount
sea: sea ocean coast shore
cellar: cellar basement vault undercroft
attic: attic loft garret
big: big large huge enormous great giant
small: small little tiny wee
quick: quick fast swift speedy rapid
brave: brave bold courageous fearless
rich: rich wealthy
poor: poor penniless broke
clever: clever smart wise bright
old_adj: old ancient elderly aged eldest oldest elder
new: new fresh recent newly
sharp: sharp keen
pretty: pretty beautiful lovely fair handsome
angry: angry cross furious mad
happy: happy glad merry cheerful joyful
sad: sad sorrowful unhappy
limp: limp lame hobble
left: left leftie left-handed left_hand
jail: jail gaol prison cell dungeon locked_up arrest imprison
guild: guild company order society
feast: feast festival fair celebration holiday fete
tax: tax toll levy tithe duty
crop: crop harvest barley wheat oats
leader: leader chief head captain
mine: mine quarry pit dig
recipe: recipe ingredient secret_ingredient mix
stop_at: stop halt pause
crime: crime guilty accuse charge
visit: visit call_on drop_by come_by pop_in call_in stop_by come_to_see
show: show reveal display
spend_time: spend pass_time hang_about
named_after: named_after namesake called_after name_after
replace: replace succeed take_over take_*_over step_into follow_as
steps: step stair stairs staircase rung
garrison: garrison soldier guard troop men_at_arms
skill: good_at best skilled talent talented gifted excel expert master_of
made_of: made_of made_from made_out_of cast_from cast_of cast_in carved_from carved_out_of cut_from built_of built_from forged_from forged_of hewn_from woven_from
wide: wide width broad across
refuse: refuse reject turn_down turned_down turn_*_down decline spurn rebuff say_no said_no not_accept rather_die rather_die_than_*
forbid: forbid forbade forbidden ban prohibit not_allow may_not must_not may_*_not not_permit bar
propose: propose proposal ask_for_*_hand ask_*_to_marry pop_the_question
share: same_day same_age in_common share split divide
trust: trust rely believe_in
help: help aid assist save rescue lend_a_hand come_to_*_aid pull_*_out
save: save rescue pull_from spare haul_out drag_from
lesson: lesson class practice
look_for: look_for search seek hunt_for after look search_for
fail: fail unable
wake: wake rise get_up up
prefer_time: usually often always every
expect: expect pregnant due
return: return come_back get_back give_back give_*_back bring_back bring_*_back hand_back hand_*_back send_back pay_*_back go_back head_back be_back
cancel: cancel call_off call_*_off scrap abandon not_take_place not_happen fall_through
postpone: postpone delay put_off put_*_off move_back hold_up late behind_time
advise: advise tell_*_to told_*_to recommend suggest counsel urge warn advice recommendation tip
talk_about: talk_about discuss chat_about speak_of debate discussion topic subject
know_about: know_about know_of aware in_on_the_secret privy let_in_on
famous: famous known_for renowned noted_for renown celebrated reputation finest fame
found: found founder establish set_up start_up foundation
arrest: arrest seize jail lock_up imprison throw_in_*_jail put_in_*_cell capture take_into_custody apprehend
accuse: accuse blame suspect charge_with
free: free release let_go set_free let_out
doubt: doubt suspect mistrust distrust wary_of not_trust
celebrate: celebrate party toast mark
complain: complain grumble moan gripe
envy: envy jealous covet
miss: miss long_for pine_for homesick
regret: regret sorry_for rue repent
hope: hope wish look_forward
lie_to: lie_to deceive trick cheat swindle fool con
argue: argue quarrel row dispute fall_out fell_out bicker
forget: forget slip_*_mind
hire_out: rent let lease hire tenant
escape: escape flee run_away run_off get_away slip_away bolt
chase: chase pursue hunt run_after
bite: bite nip snap_at
sting: sting stung
grow_crop: grow raise cultivate
rain: rain storm downpour wet
cargo: cargo carry freight load
noise: noise racket din snore
mend: mend fix repair
lock: lock padlock bolt latch
climb: climb scale
cross: cross ford go_over get_across
invite: invite ask_over invitation guest
punish: punish whip flog fine penalty sentence
appoint: appoint elect choose name_as make_*_captain promote
retire: retire step_down give_up
guess: guess estimate
measure: measure
raise: raise bring_up rear
adopt: adopt foundling orphan take_in
accident: accident mishap happen happened befall
"""

KINDS = """
colour [colour color hue shade tint]: red blue green yellow black white brown grey gray purple orange pink scarlet crimson violet indigo gold golden silver teal turquoise maroon azure emerald russet ivory amber bronze copper lilac lavender tan beige chestnut bay piebald dappled roan sorrel auburn blonde blond ginger magenta ochre navy sapphire ruby cobalt mauve charcoal vermilion saffron hazel
kin [relative kin family relation kinsman kinswoman kinfolk]: brother sister mother father mum dad mam papa mama uncle aunt auntie cousin nephew niece grandmother grandfather gran grandma grandpa granny grandad granddad son daughter child husband wife twin stepbrother stepsister stepmother stepfather grandson granddaughter grandchild godmother godfather godson goddaughter widow sibling parent spouse
person [person someone man woman fellow somebody people folk anyone one]: man woman boy girl lad lass friend neighbour rival enemy stranger master mistress lord lady king queen prince princess captain chief apprentice boss foe mate companion sweetheart partner mentor tutor hero thief guest lodger tenant landlord landlady crew
trade [job profession trade occupation craft work career vocation]: blacksmith smith baker miller farmer carpenter mason tailor weaver cobbler tanner butcher brewer cooper fletcher bowyer potter thatcher shepherd goatherd fisherman fisher sailor hunter trapper forester woodcutter miner merchant trader peddler pedlar innkeeper barkeep bartender cook chef maid servant guard soldier knight squire captain scribe scholar healer physician doctor apothecary herbalist midwife priest priestess monk nun bard minstrel singer musician painter sculptor jeweller goldsmith silversmith locksmith tinker chandler glassblower dyer fuller saddler wheelwright cartwright shipwright ferryman boatman stablehand groom ostler beekeeper gardener gravedigger undertaker executioner judge lawyer clerk notary tax-collector spy thief smuggler pirate mercenary wizard witch alchemist astronomer cartographer mapmaker navigator librarian bookbinder printer messenger courier coachman drover falconer gamekeeper hatter seamstress laundress barber dentist surgeon vintner candlemaker clockmaker armourer armorer swordsmith ropemaker sailmaker charcoal-burner lamplighter watchman gatekeeper toymaker stonecutter quarryman actor dancer juggler acrobat fortune-teller moneylender banker steward butler tutor governess lighthouse-keeper milkmaid roofer plumber glazier bellfounder bell-ringer puppeteer cheesemaker confectioner fishmonger grocer greengrocer fowler nurse porter farrier cutler
animal [animal pet beast creature livestock]: horse mare stallion pony mule donkey ox cow bull calf goat sheep lamb ram pig sow hog boar dog hound puppy cat kitten hen chicken rooster cock duck goose geese swan raven crow owl hawk falcon parrot pigeon dove bee ferret rabbit hare fox wolf bear deer stag rat mouse mice squirrel snake adder viper toad frog turtle tortoise lizard spider bat hedgehog badger otter weasel stoat magpie jackdaw finch canary sparrow robin eel trout salmon carp pike foal filly gelding terrier mastiff greyhound sheepdog cattle bird fish newt llama camel monkey gecko moth beetle ewe heron peacock turkey quail partridge
food [food dish meal snack fare supper dinner breakfast treat delicacy]: bread cheese pie stew soup roast ham bacon sausage mutton beef pork venison chicken duck goose trout salmon herring eel oyster mussel crab lobster egg apple pear plum cherry berry blackberry strawberry raspberry gooseberry fig date grape onion leek turnip carrot cabbage potato mushroom honey cake tart pudding biscuit porridge oatmeal nut walnut hazelnut almond chestnut pastry bun scone pancake dumpling pickle lentil bean pea garlic liver kidney tripe custard jam butter milk gingerbread radish parsnip cucumber shellfish lamb rabbit pheasant haggis noodle rice olive lemon peach apricot rhubarb beetroot
drink [drink beverage tipple brew]: ale beer cider mead wine stout porter brandy rum whisky whiskey gin grog tea coffee milk water juice perry sherry port lager bitter cordial buttermilk cocoa kvass
instrument [instrument]: lute harp fiddle flute drum lyre violin tin-whistle trumpet bagpipe hurdy-gurdy mandolin guitar cello tambourine dulcimer zither concertina accordion viol recorder bodhran piccolo oboe organ psaltery banjo
weapon [weapon arm]: sword axe dagger knife spear bow crossbow mace hammer warhammer flail staff quarterstaff halberd rapier sabre cutlass pike club sling whip scimitar lance glaive trident longbow longsword broadsword shortsword hatchet cudgel blowpipe javelin scythe morningstar polearm stiletto
garment [garment clothing clothes attire]: hat cap hood cloak coat jacket shirt tunic dress gown skirt boot shoe sandal glove mitten scarf belt sash apron robe vest breeches trousers stocking ring necklace brooch amulet locket earring bracelet crown helm helmet
ailment [illness ailment disease sickness malady complaint affliction]: fever cough frostbite gout plague pox ague toothache headache cold flu measles scurvy consumption jaundice rheumatism broken-leg ankle tooth rash boil blister dropsy palsy blindness deafness lumbago migraine sprain hiccup
metal [metal]: iron steel gold silver copper bronze tin lead brass mithril pewter
material [material]: wood stone marble glass clay ivory bone leather silk wool linen cotton straw wax paper parchment porcelain granite slate brick iron steel gold silver copper bronze tin lead brass mithril pewter oak ash elm pine yew ebony horn velvet fur felt wooden golden leaden oaken woollen
gem [gem stone jewel gemstone]: ruby emerald sapphire diamond opal pearl amethyst garnet topaz jade amber onyx turquoise moonstone agate
tree [tree wood timber]: oak ash elm willow birch pine yew beech maple fir cedar walnut alder rowan hawthorn holly linden poplar spruce chestnut
flower [flower bloom blossom plant herb]: rose lily daisy violet tulip foxglove lavender poppy bluebell marigold iris heather primrose thistle sunflower rosemary thyme sage mint nettle comfrey feverfew yarrow chamomile basil wolfsbane valerian orchid snowdrop
day [day weekday]: monday tuesday wednesday thursday friday saturday sunday today tomorrow yesterday tonight midweek market-day washday sabbath
month [month]: january february march april may june july august september october november december
season [season]: spring summer autumn winter fall
moment [time hour moment date]: dawn dusk noon midnight morning evening afternoon night sunrise sunset daybreak nightfall midday sundown sunup hour o'clock oclock week fortnight year month day season ago minute century decade bell tide harvest midsummer midwinter solstice equinox yule christmas easter michaelmas candlemas lammas eve weekend daily weekly monthly yearly annually nightly soon later recently once twilight teatime lunchtime suppertime moon new-moon full-moon moonrise cockcrow
coin [money coin currency payment]: silver gold copper penny pennies crown shilling florin ducat coin mark groat pound guinea farthing piece sovereign thaler denier dollar sixpence gp sp cp silvers coppers golds pence bit obol dinar
unit [measure length distance size]: mile league foot feet yard inch fathom furlong pace step cubit ell acre pound ounce stone barrel pint gallon bushel hand span hectare rod kilometre metre
direction [direction way]: north south east west northeast northwest southeast southwest up down left right upstream downstream
language [language tongue]: elvish dwarvish orcish common latin french german draconic goblin gnomish giant sylvan welsh irish gaelic norse greek spanish
body [limb part]: head face eye ear nose mouth tooth teeth tongue neck shoulder arm elbow wrist hand finger thumb chest back hip leg knee ankle foot toe hair beard skin cheek chin rib
place [place town city village hamlet port harbour country region land island settlement kingdom spot location]: inn tavern mill bridge well cellar attic loft barn stable church chapel temple shrine tower castle keep gate market square shop forge smithy bakery brewery mine quarry forest wood woods grove orchard garden field meadow farm river lake pond marsh swamp bog hill mountain valley cave cavern cliff beach shore coast harbour docks dock quay wharf pier lighthouse crossroads road street lane alley cottage house hut cabin hall library school guildhall graveyard cemetery crypt tomb ruin ruins island village town city hamlet port chest box drawer cupboard shelf floorboard hearth chimney fireplace mantel rafters roof stairs kitchen pantry bedroom window door wall bed mattress pillow barrel crate sack stump hollow oak willow tree hedge bush stone rock statue fountain altar pew bell belfry cellar trapdoor vault haystack hayloft shed kennel coop pigsty byre trough cart wagon boat ship rowing-boat saddlebag pocket purse boot hat jar pot urn basket bench counter bar table desk bookcase north south east west upstairs downstairs home abroad yard courtyard prison jail infirmary monastery abbey convent manor palace fort fortress barracks camp pass glade clearing spring waterfall ford ferry mews granary outhouse privy tannery sawmill vineyard dovecote henhouse beehive
"""

# Words of the vocabulary that, written with a capital, are somebody's name.
GIVEN_NAMES = """rowan rose lily daisy robin heather iris april june hazel olive ruby pearl amber
sage basil violet poppy holly ivy rosemary jade opal garnet ash linden hunter mason cooper fletcher
taylor tanner chandler carter sawyer piper reed drake wren finch jay hawk fox wolf bear sparrow"""

FEMALE = """sister mother mum mam mama aunt auntie niece grandmother gran grandma granny daughter
wife stepsister stepmother granddaughter godmother goddaughter widow woman girl lass lady queen
princess mistress priestess nun witch midwife seamstress mare hen ewe sow filly landlady maid"""

MALE = """brother father dad papa uncle nephew grandfather grandpa grandad granddad son husband
stepbrother stepfather grandson godfather godson man boy lad lord king prince master monk priest
stallion rooster ram bull gelding landlord"""

# Kinship words that may stand for one another in a question, wider word first.
WIDER_KIN = """
sibling: brother sister twin stepbrother stepsister
parent: mother father mum dad mam papa mama
grandparent: grandmother grandfather gran grandma grandpa granny grandad granddad
grandmother: gran grandma granny
grandfather: grandpa grandad granddad
aunt: auntie
child: son daughter kid
spouse: husband wife
make: forge carve sew brew bake weave knit write compose paint hammer sculpt whittle design craft build create construct
injure: bite break sprain burn sting cut crush gore kick
attack: bite sting gore kick maul
boat: ferry barge galley schooner sloop brig cog ketch
horse: mare stallion pony gelding foal filly
dog: hound puppy terrier mastiff greyhound sheepdog
cat: kitten tomcat
chicken: hen rooster cock
sheep: ewe lamb ram
"""

STOP = """a an the this that these those some any each every both all no not nor or and but if then
than so as of in on at by to for from with without into onto upon over under about above below
between through during before after against among across along around behind beneath beside
besides beyond near off out up down inside outside toward towards until till since while because
though although whether where when who whom whose what which why how is am are was were be been
being do does did doing done have has had having will would shall should can could may might must
ought i me my mine myself you your yours yourself he him his himself she her hers herself it its
itself we us our ours ourselves they them their theirs themselves there here just only very too
also again ever never even still yet already now today quite rather really actually well oh ah eh
hm hmm please thanks okay ok yes yeah aye nay else such own same other another more most less
least much many few lot lots bit like got get gets s t d ll m re ve isn aren wasn weren don doesn
didn wouldn couldn shouldn hasn haven hadn ain currently exactly nowadays days supposedly
apparently indeed perhaps maybe say says said tell tells told mention mentioned heard
hear know knows knew known remember recall remind think thinks thought guess wonder sure by_the_way
anyway happen happens chance anything something nothing everything anyone someone somebody anybody
thing things stuff kind sort type one ones way us let lets   back away ago aria time times number many often far long old much name
names called call course truly tonight these honestly look mind first last please somewhere
anywhere everywhere person people man woman folk particular usually generally always normally
supposed bad longer fact certain certainly better according together"""

# What a thing of a kind suggests, without saying it.
KIND_HINTS = {
    "trade": "work",
    "instrument": "play",
    "weapon": "wield",
    "drink": "drink",
    "food": "eat",
    "coin": "cost",
    "ailment": "ill",
}

AS_IT_IS = """herring earring clearing stocking evening morning wedding clothing pudding ring king
thing spring string wing sling building nothing anything something everything during ceiling
lovely poorly family belly early only holly lily ugly jelly july reply supply bed red hundred
shed sled wicked naked sacred seed weed forest harvest interest honest request contest guest chest
west priest tempest conquest rest best nest test fest crest breakfast blonde news glass princess
mistress duchess less address harness scissors trousers breeches barracks always perhaps
meeting sterling darling dumpling duckling seedling sibling offspring"""

LIGHT_VERBS = """be do have get go make take come put give use let say tell know see call name keep
run set turn hold start stay happen work like bring find look lie stand sit leave due celebrate plan intend follow practise pursue order deal mean try seem end"""

IRREGULAR = """
keep: kept | buy: bought | sell: sold | hide: hid hidden | bear: bore borne | lend: lent |
teach: taught | steal: stole stolen | swear: swore sworn | marry: married | die: died dying dead dies | tie: tied tying ties |
lose: lost | mislay: mislaid | overcome: overcame | undertake: undertook | forsake: forsook | find: found | build: built | write: wrote written | wear: wore worn | eat: ate eaten |
drink: drank drunk | sleep: slept | see: saw seen | meet: met | win: won | break: broke broken |
speak: spoke spoken | sing: sang sung | fall: fell fallen | sink: sank sunk | rise: rose risen |
ride: rode ridden | drive: drove driven | go: went gone goes going | come: came | leave: left | give: gave
given | take: took taken | make: made | have: has had having | do: did done does doing | be: is are was
were been being am | say: said | tell: told | know: knew known | think: thought | bring: brought |
catch: caught | fight: fought | feed: fed | bleed: bled | lead: led | read: | hold: held | send:
sent | spend: spent | pay: paid | lay: laid | lie: lying lain lies | sit: sat | stand: stood | swim: swam
swum | run: ran | begin: began begun | grow: grew grown | throw: threw thrown | draw: drew drawn |
fly: flew flown | freeze: froze frozen | choose: chose chosen | forget: forgot forgotten | get: got
gotten | hang: hung | dig: dug | stick: stuck | strike: struck | sting: stung | weave: wove woven |
tear: tore torn | shake: shook shaken | bite: bit bitten | feel: felt | mean: meant | dream: dreamt |
burn: burnt | learn: learnt | sew: sewn | sow: sown | show: shown | slay: slew slain | wed: |
child: children | man: men | woman: women | foot: feet | tooth: teeth | goose: geese | mouse: mice |
wife: wives | wolf: wolves | knife: knives | calf: calves | half: halves | loaf: loaves | thief: thieves | ox: oxen | sheep: | penny: pennies pence | colour: color
colors | favourite: favorite | neighbour: neighbor | grey: gray | jeweller: jeweler | harbour: harbor |
armour: armor | flavour: flavor | honour: honor | odour: odor | theatre: theater | centre: center |
wake: woke woken | shoot: shot | light: lit | sweep: swept | weep: wept | kneel: knelt | rob: | spin:
spun | swing: swung | cling: clung | flee: fled | bind: bound | shut: |
set: | put: | cut: | hurt: | cost: | bet: | quit: | split: | spread: | shed: | mow: mown | owe: owed |
breed: bred | creep: crept | deal: dealt | stride: strode | shear: shorn | forge: | bury: buried
"""

NUMBERS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen twenty"""

TENS = "thirty forty fifty sixty seventy eighty ninety hundred thousand million"

OTHER_NUMBERS = """dozen couple pair half score twice thrice once single handful quarter third several
both trio quartet twins triplets none double triple fourth fifth sixth seventh eighth ninth tenth
first second eleventh twelfth thirteenth fourteenth fifteenth twentieth"""
