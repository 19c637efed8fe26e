"""Words that the embedded model's lessons are made of. Data only."""

WORDS = """
strawberry banana apple cherry orange lemon melon raspberry blueberry papaya mango coconut pineapple grape peach plum
mississippi tennessee massachusetts california hawaii alabama oregon nevada arizona london berlin madrid lisbon
sentence paragraph chapter book library reading writing pencil paper eraser notebook keyboard monitor
laptop server network internet browser window mouse screen program function variable compiler terminal
elephant giraffe kangaroo hippopotamus rhinoceros zebra lion tiger leopard cheetah monkey gorilla penguin dolphin
butterfly caterpillar grasshopper dragonfly mosquito spider scorpion lobster octopus squid salmon trout tuna
mountain valley river ocean desert forest island volcano glacier meadow canyon waterfall lagoon harbor beach
happiness success address assess possess committee accommodate bookkeeper balloon committee
summer winter spring autumn january february september october november december monday tuesday wednesday thursday
saturday sunday midnight yesterday tomorrow calendar century decade minute second
kitchen bathroom bedroom garage garden balcony ceiling carpet curtain cushion blanket pillow mirror cabinet drawer
teacher doctor engineer lawyer plumber carpenter musician painter sculptor director actor dancer singer writer
guitar piano violin trumpet saxophone clarinet accordion harmonica xylophone tambourine orchestra symphony melody
basketball volleyball tennis badminton hockey cricket baseball swimming cycling running jumping skating
parallel pepper pizza pasta spaghetti lasagna noodle burger sandwich salad soup cheese butter yogurt chocolate
vanilla cinnamon ginger garlic onion tomato potato carrot cabbage spinach broccoli cauliflower cucumber pumpkin
rhythm mystery symbol system oxygen hydrogen nitrogen helium lithium carbon silicon aluminum titanium mercury
level radar civic rotor noon racecar kayak madam refer deed world python java apple silicon token
three seven eleven seventeen hundred thousand million error mirror terror occurrence interpreter refrigerator
queue quiz quartz jazz fizz buzz puzzle dazzle fuzzy lazy crazy amazing magazine horizon citizen frozen
bottle kettle rattle settle battle cattle shuttle puddle middle riddle saddle paddle noodle bubble
""".split()

CITIES = """
Paris London Berlin Madrid Rome Vienna Oslo Stockholm Helsinki Copenhagen Dublin Lisbon Athens Warsaw Prague Budapest
Tokyo Osaka Kyoto Seoul Beijing Shanghai Delhi Mumbai Bangkok Hanoi Jakarta Manila Singapore Sydney Melbourne Auckland
Cairo Lagos Nairobi Accra Tunis Rabat Dakar Toronto Montreal Vancouver Boston Chicago Denver Seattle Houston Dallas
Miami Atlanta Phoenix Austin Portland Lima Quito Bogota Santiago Brasilia Caracas Havana Zurich Geneva Basel Munich
Hamburg Cologne Lyon Nice Bordeaux Milan Turin Naples Venice Florence Seville Valencia Porto Krakow Riga Tallinn Kyiv
""".split()

CONDITIONS = ("sunny", "cloudy", "rainy", "windy", "foggy", "snowy", "stormy", "clear", "hazy", "humid")

GREETINGS = (
    ("Hi", "Hello", "Hey", "Good morning", "Good evening", "Good afternoon", "Greetings", "Hello hello", "Howdy", "Hiya",
     "Hey hey", "Hi hi", "Yo", "Good day", "Welcome", "Hallo", "Morning", "Evening"),
    ("", "", "there", "you", "friend", "model", "robot", "computer", "assistant", "everyone", "again", "my friend",
     "little model", "dear model", "machine", "buddy"),
    ("", "", "", "how are you", "how are you today", "nice to meet you", "are you there", "how is it going", "what's up",
     "who are you", "what are you", "what can you do", "how do you do", "it's me", "good to see you"),
)  # fmt: skip

OTHER_TASKS = (
    "Write a poem about {t}", "Tell me a joke about {t}", "What is {t}", "Explain {t}", "Who invented {t}",
    "What is the capital of {t}", "Translate {t} into French", "Write a story about {t}", "Give me a recipe for {t}",
    "Why is {t} so popular", "How does {t} work", "What do you think about {t}", "Draw {t}", "Sing a song about {t}",
    "Tell me about {t}", "Describe {t}", "Summarize {t}", "What is the history of {t}", "Can you help me with {t}",
    "Where can I buy {t}", "When was {t} discovered", "Who is the president of {t}", "Write an essay on {t}",
    "What is the meaning of {t}", "Is {t} good for me", "Write code for {t}", "Spell {t}", "Make a list of {t}",
    "What color is {t}", "How old is {t}", "How far away is {t}", "How much does {t} cost", "Do you like {t}",
    "Do you know {t}", "Please fix {t}", "I need advice on {t}", "I have a question about {t}", "Is {t} real",
    "Give me ten facts about {t}", "Recommend a book about {t}", "What is the weather in {t}", "{t}", "{t} please",
    "I love {t}", "I am tired of {t}", "My {t} is broken", "What happened to {t}", "Define {t}", "Write a haiku about {t}",
    "Convert {t} to kilometers", "How many people live in {t}", "What rhymes with {t}", "Reverse {t}", "Compare {t} and tea",
    "Let us talk about {t}", "Show me {t}", "Open {t}", "Search the web for {t}", "Play {t}", "Remind me of {t}",
    "What is the best {t}", "Why do cats like {t}", "Does {t} exist", "Can I eat {t}", "Write a letter about {t}",
    "What is the opposite of {t}", "How do I cook {t}", "How do I learn {t}", "Should I invest in {t}", "Count {t}",
    "What language is spoken in {t}", "Name three kinds of {t}", "Which is better, {t} or coffee", "Sort {t}", "Add {t}",
)  # fmt: skip

TOPICS = (
    """
love|cats|dogs|quantum physics|the moon|the sun|France|Germany|Japan|Brazil|Italy|Canada|China|India|Spain|Russia|Egypt
music|art|history|poetry|philosophy|football|chess|cooking|pizza|chocolate|coffee|tea|bread|soup|cheese|wine|beer
the weather|climate change|gravity|black holes|electricity|magnets|light|sound|time travel|dinosaurs|volcanoes|rivers
the internet|computers|Python|JavaScript|Rust|machine learning|neural networks|databases|operating systems|robots
my homework|my car|my phone|my bike|my garden|my house|my job|my boss|my friend|my mother|my dog|my cat|my computer
a dragon|a princess|a pirate|a wizard|a ghost|a knight|a castle|a spaceship|a train|a boat|a plane|a horse|a bird
happiness|sadness|anger|friendship|freedom|justice|truth|beauty|death|life|dreams|sleep|health|exercise|yoga|running
Shakespeare|Einstein|Newton|Mozart|Beethoven|Picasso|Napoleon|Caesar|Plato|Darwin|Tesla|Galileo|Gandhi|Lincoln
the economy|money|taxes|stocks|banks|insurance|politics|elections|democracy|laws|schools|universities|teachers
trees|flowers|roses|grass|mountains|oceans|deserts|islands|forests|rain|snow|wind|fire|water|earth|stars|planets
shoes|hats|clothes|dresses|furniture|lamps|windows|doors|kitchens|gardens|bridges|towers|roads|cities|villages
a good name for a baby|the best movie ever|the news today|the stock market|this text|that thing|everything|nothing
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
