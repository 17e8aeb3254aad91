"""Short dialogues of a grammar, which the model of the playground's chat learns from: see chat_model.py.

Each topic is a function that draws a question and its answer. They are made of the tables below, in many
wordings. What is drawn depends on the seed alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

Message = dict[str, str]
Turn = tuple[str, str]

COLOURS = {
    "the sky": "blue", "grass": "green", "snow": "white", "coal": "black", "a banana": "yellow", "blood": "red",
    "a lemon": "yellow", "a carrot": "orange", "a tomato": "red", "milk": "white", "chocolate": "brown",
    "a frog": "green", "the sun": "yellow", "the sea": "blue", "a cherry": "red", "a crow": "black",
    "a flamingo": "pink", "an elephant": "grey", "a plum": "purple", "a strawberry": "red", "wood": "brown",
    "a polar bear": "white", "a leaf": "green", "a pumpkin": "orange", "the moon": "white", "honey": "golden",
    "a lime": "green", "a fire engine": "red", "an orange": "orange", "a violet": "purple",
}  # fmt: skip
MIXTURES = {
    ("blue", "yellow"): "green", ("red", "yellow"): "orange", ("red", "blue"): "purple",
    ("black", "white"): "grey", ("red", "white"): "pink", ("red", "green"): "brown",
}  # fmt: skip
CAPITALS = {
    "France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid", "Portugal": "Lisbon",
    "England": "London", "Ireland": "Dublin", "Norway": "Oslo", "Sweden": "Stockholm", "Finland": "Helsinki",
    "Denmark": "Copenhagen", "Poland": "Warsaw", "Austria": "Vienna", "Greece": "Athens", "Hungary": "Budapest",
    "Russia": "Moscow", "Turkey": "Ankara", "Egypt": "Cairo", "Kenya": "Nairobi", "Nigeria": "Abuja",
    "Japan": "Tokyo", "China": "Beijing", "India": "New Delhi", "Thailand": "Bangkok", "Vietnam": "Hanoi",
    "South Korea": "Seoul", "Australia": "Canberra", "New Zealand": "Wellington", "Canada": "Ottawa",
    "Mexico": "Mexico City", "Brazil": "Brasília", "Argentina": "Buenos Aires", "Chile": "Santiago",
    "Peru": "Lima", "Cuba": "Havana", "Iceland": "Reykjavik", "Belgium": "Brussels", "Switzerland": "Bern",
    "Czechia": "Prague", "Ukraine": "Kyiv", "the Netherlands": "Amsterdam", "the United States": "Washington",
}  # fmt: skip
SOUNDS = {
    "cow": "moo", "cat": "meow", "dog": "woof", "duck": "quack", "sheep": "baa", "pig": "oink", "owl": "hoo",
    "lion": "roar", "frog": "ribbit", "bee": "buzz", "horse": "neigh", "mouse": "squeak", "snake": "hiss",
    "rooster": "cock-a-doodle-doo",
}  # fmt: skip
LEGS = {
    "spider": 8, "cow": 4, "dog": 4, "cat": 4, "bird": 2, "bee": 6, "ant": 6, "snake": 0, "fish": 0, "horse": 4,
    "duck": 2, "human": 2, "octopus": 0, "beetle": 6, "worm": 0,
}  # fmt: skip
HOMES = {
    "a fish": "in water", "a bee": "in a hive", "a bird": "in a nest", "a spider": "in a web", "a fox": "in a den",
    "a penguin": "in Antarctica", "a camel": "in the desert", "a monkey": "in trees", "a mole": "under the ground",
    "a whale": "in the sea", "a kangaroo": "in Australia", "a polar bear": "in the Arctic",
}  # fmt: skip
OPPOSITES = (
    "hot cold", "big small", "fast slow", "day night", "up down", "left right", "good bad", "happy sad", "old new",
    "light dark", "wet dry", "high low", "long short", "open closed", "rich poor", "hard soft", "loud quiet",
    "early late", "full empty", "strong weak", "clean dirty", "near far", "thick thin", "love hate", "begin end",
)  # fmt: skip
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = ("January February March April May June July August September October November December").split()
LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
NAMES = (
    "Ada Alan Grace Emma Noah Mia Leo Anna Tom Lucy Ben Sara Max Nina Paul Ella Jack Ruth Sam Rosa Finn Clara Omar "
    "Lena Hugo Maya Ivan Zoe Karl Iris Theo Eva Luis Jane Otto Lily Amir Vera Nils Yuki Kofi Priya Marie Pedro "
    "Olga Felix Hana Oscar Julia Ravi"
).split()
POLYGRAD = (
    (
        "what is polygrad",
        "Polygrad is a tensor compiler. It trains and runs models in Python, in Node and in a web page.",
    ),
    ("what is a tensor", "A tensor is an array of numbers with a shape, such as a table with rows and columns."),
    (
        "what is a compiler",
        "A compiler translates a program. Polygrad translates tensor programs to fast machine code.",
    ),
    ("what is a gradient", "A gradient says how to change each weight so that the loss gets smaller."),
    ("what is a loss", "The loss says how wrong a model is. Training makes it smaller."),
    ("what is training", "Training changes the weights of a model, step by step, so that the loss falls."),
    ("what is a kernel", "A kernel is one small program that computes a tensor. Polygrad compiles it for your machine."),
    ("what is a token", "A token is a piece of text. I read and write one token after the other."),
    ("what is a language model", "A language model predicts the next token of a text. I am one, a very small one."),
    ("what is a neural network", "A neural network is layers of numbers that are trained to turn inputs into answers."),
    ("what is a playground", "This page is a playground: you can write programs, train models and talk with me."),
    ("what is fine-tuning", "Fine-tuning trains a model a little more, on other texts. Try it in the next tab."),
    ("what is lora", "LoRA trains two small matrices beside each large one, so fine-tuning is quick and small."),
    ("what is webassembly", "WebAssembly is fast code for web pages. Polygrad compiles my kernels to it."),
    ("what is an optimizer", "An optimizer changes the weights with the help of the gradients."),
    ("what is temperature", "Temperature says how daring I am: at 0 I always take the likeliest token."),
)  # fmt: skip
MYSELF = (
    ("who are you|what are you", "I am Poly, a very small language model that lives in this page."),
    ("what is your name|do you have a name", "My name is Poly."),
    ("how big are you|how many weights do you have", "I have about one million weights. Large models have a million times as many."),
    ("who made you|who trained you|how were you made", "Polygrad trained me in ten minutes, on dialogues that a small script wrote."),
    ("where do you run|where are you", "I run in your browser, in WebAssembly. Nothing you write leaves this page."),
    ("do you need a network|do you need the internet|can you work offline", "No. Once this page is loaded, I work offline."),
    ("are you alive|are you human|are you a person", "No, I am a small program with a million numbers in it."),
    ("are you smart|are you clever", "Not very, but I am quick. I know a few facts, and I can add small numbers."),
    ("can you learn|can i train you|can i teach you", "Yes! The tab Fine-tune teaches me a text of yours with LoRA."),
    ("what can you do|help|what do you know", "Ask me about colours, capitals, animals, opposites, small sums or polygrad, or ask for a story."),
    ("what is your favourite colour|which colour do you like", "I like blue, the colour of the sky."),
    ("how old are you", "I was trained a short while ago, so I am very young."),
    ("what do you like|do you have a hobby", "I like short questions and small numbers."),
)  # fmt: skip
JOKES = (
    "Why did the tensor go to school? To get in shape.",
    "Why was the gradient sad? It always went down.",
    "What do you call a sleeping cow? A bulldozer.",
    "Why is six afraid of seven? Because seven ate nine.",
    "What did the zero say to the eight? Nice belt!",
    "Why did the loss fall? The optimizer pushed it.",
)
POEMS = (
    "A little model in a page, it learned to talk at a tender age.",
    "The moon is white, the sea is blue, and all these words I wrote for you.",
    "Roses are red, violets are blue, a tensor has shape, and so do you.",
)
UNKNOWN = (
    "I do not know that. I am a very small model: ask me about colours, capitals, animals or small sums."
)
STRANGE = (
    "who won the match", "what is the weather today", "write a program in rust", "who is the president",
    "what did i eat", "how do i get rich", "what is the meaning of life", "what time is it", "when is the next train",
    "how do i cook rice", "who wrote hamlet", "how far is the moon", "what is love", "what is the price of gold",
    "when did the war end", "how do planes fly", "what is a black hole", "translate this to french",
    "how does a car work", "where are my keys", "what is dna", "who painted this", "why is the sea salty",
    "what should i wear", "how tall is everest", "who invented the telephone", "can you book a flight",
    "what is quantum physics", "how deep is the ocean", "who is my neighbour", "what is the best film",
    "why do we dream", "how many people live here", "what is on tv tonight", "how do i fix my bike",
)  # fmt: skip
WORDS = (
    "river window doctor garden machine winter bottle engine pencil market history teacher planet music "
    "coffee castle bridge summer football island computer mountain holiday kitchen letter painting"
).split()


def pick(rng: random.Random, text: str) -> str:
    """One of the wordings in a text, which `|` separates."""
    return rng.choice(text.split("|"))


def colour_of(rng: random.Random) -> Turn:
    thing, colour = rng.choice(list(COLOURS.items()))
    spelled = pick(rng, "colour|color")
    asked = pick(
        rng, f"what {spelled} is {thing}|which {spelled} does {thing} have|what is the {spelled} of {thing}"
    )
    return asked, f"{thing.capitalize()} is {colour}."


def mixture(rng: random.Random) -> Turn:
    pair, made = rng.choice(list(MIXTURES.items()))
    a, b = rng.sample(pair, 2)
    asked = pick(
        rng, f"what do {a} and {b} make|what do i get when i mix {a} and {b}|what is {a} mixed with {b}"
    )
    return asked, f"{a.capitalize()} and {b} make {made}."


def capital(rng: random.Random) -> Turn:
    country, city = rng.choice(list(CAPITALS.items()))
    if rng.random() < 0.2:
        asked = pick(rng, f"where is {city}|in which country is {city}|what country is {city} in")
        return asked, f"{city} is in {country}. It is the capital."
    asked = pick(
        rng, f"what is the capital of {country}|capital of {country}|which city is the capital of {country}"
    )
    return asked, f"The capital of {country} is {city}."


def with_article(noun: str) -> str:
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def animal(rng: random.Random) -> Turn:
    kind = rng.randrange(3)
    if kind == 0:
        name, sound = rng.choice(list(SOUNDS.items()))
        one = with_article(name)
        return pick(
            rng, f"what does {one} say|what sound does {one} make"
        ), f"{one.capitalize()} says {sound}."
    if kind == 1:
        name, legs = rng.choice(list(LEGS.items()))
        one = with_article(name)
        many = "no legs" if legs == 0 else f"{legs} legs"
        asked = pick(rng, f"how many legs does {one} have|how many legs has {one}")
        return asked, f"{one.capitalize()} has {many}."
    name, home = rng.choice(list(HOMES.items()))
    return pick(rng, f"where does {name} live|where do i find {name}"), f"{name.capitalize()} lives {home}."


def opposite(rng: random.Random) -> Turn:
    a, b = rng.sample(rng.choice(OPPOSITES).split(), 2)
    asked = pick(rng, f"what is the opposite of {a}|opposite of {a}")
    return asked, f"The opposite of {a} is {b}."


def following(rng: random.Random) -> Turn:
    row, around = rng.choice(((DAYS, True), (MONTHS, True), (LETTERS, False)))
    last = len(row) if around else len(row) - 1
    at = rng.randrange(last)
    a, b = row[at], row[(at + 1) % len(row)]
    if rng.random() < 0.5:
        return pick(
            rng, f"what comes after {a}|which comes after {a}|what follows {a}"
        ), f"After {a} comes {b}."
    return pick(rng, f"what comes before {b}|which comes before {b}"), f"Before {b} comes {a}."


def arithmetic(rng: random.Random) -> Turn:
    sign = rng.choice("++--*")
    if sign == "+":
        a, b = rng.randrange(13), rng.randrange(13)
        words, result = "plus|and|+|+|+", a + b
    elif sign == "-":
        a = rng.randrange(13)
        b = rng.randrange(a + 1)
        words, result = "minus|-|-|-", a - b
    else:
        a, b = rng.randrange(11), rng.randrange(11)
        words, result = "times|*|×|x", a * b
    asked = f"{a} {pick(rng, words)} {b}"
    shown = {"*": "×"}.get(sign, sign)
    beginning = pick(rng, "what is |what is |what is |how much is |calculate ||")
    return beginning + asked, f"{a} {shown} {b} = {result}."


def counting(rng: random.Random) -> Turn:
    last = rng.randint(3, 12)
    return pick(rng, f"count to {last}|can you count to {last}"), ", ".join(
        map(str, range(1, last + 1))
    ) + "."


def about_polygrad(rng: random.Random) -> Turn:
    question, answer = rng.choice(POLYGRAD)
    return question.replace("what is", pick(rng, "what is|what is|what is|explain|tell me about")), answer


def about_itself(rng: random.Random) -> Turn:
    question, answer = rng.choice(MYSELF)
    return pick(rng, question), answer


def politeness(rng: random.Random) -> Turn:
    kind = rng.randrange(5)
    if kind == 0:
        asked = pick(rng, "hello|hi|hey|hello there|hi there|good morning|good evening|good day")
        return asked, pick(
            rng, "Hello! Ask me something.|Hi! What would you like to know?|Hello! Nice to see you."
        )
    if kind == 1:
        return pick(rng, "how are you|how do you do|how are you today"), pick(
            rng, "I am fine, thank you. How are you?|Very well, thank you!"
        )
    if kind == 2:
        asked = pick(rng, "thanks|thank you|thank you very much|that is right|well done|great|nice|cool|good")
        return asked, pick(rng, "You are welcome!|I am glad to help.")
    if kind == 3:
        asked = pick(rng, "i am fine|fine|good, thank you|i am well|i am happy")
        return asked, pick(rng, "I am glad to hear that.|That is good to hear!")
    return pick(rng, "bye|goodbye|good night|see you|see you later"), pick(rng, "Goodbye!|See you soon!")


def entertainment(rng: random.Random) -> Turn:
    kind = rng.randrange(3)
    if kind == 0:
        return pick(
            rng, "tell me a joke|a joke please|another joke|do you know a joke|make me laugh"
        ), rng.choice(JOKES)
    if kind == 1:
        return pick(rng, "write a poem|tell me a poem|a poem please|another poem"), rng.choice(POEMS)
    return pick(rng, "tell me a story|a story please|another story|write a story|tell me a tale"), story(rng)


def story(rng: random.Random) -> str:
    adjective = pick(rng, "small|brave|clever|lazy|hungry|happy|shy|curious")
    kind = pick(rng, "fox|mouse|bear|cat|owl|frog|duck|horse|rabbit|whale")
    home = pick(rng, "forest|garden|castle|village|river|cave|library|lighthouse")
    found = pick(rng, "key|map|lamp|book|boat|stone|letter|clock")
    friend = pick(rng, "snail|crow|sheep|bee|mole|swan|hedgehog|beetle")
    end = pick(
        rng,
        "They shared it and became friends.|It opened a door to the sea.|They followed it to the moon.|"
        "It was old, but it still worked.|They gave it back and had cake.",
    )
    name = rng.choice(NAMES)
    return (
        f"Once there was a {adjective} {kind} called {name}, who lived in a {home}. One day {name} and a {friend} "
        f"found a {found}. {end}"
    )


def strange(rng: random.Random) -> Turn:
    """What the model does not know, also with words that it has seen nowhere else."""
    if rng.random() < 0.5:
        return rng.choice(STRANGE), UNKNOWN
    a, b = rng.sample(WORDS, 2)
    asked = pick(
        rng,
        f"who made the {a}|where is the {a}|how does a {a} work|why is the {a} in the {b}|what is a {a} {b}|"
        f"how old is the {a}|can you fix my {a}|when does the {a} come|do you like the {a}|which {a} is the best",
    )
    return asked, UNKNOWN


Topic = Callable[[random.Random], Turn]

# The topics whose questions have one answer, and the others, with how often each is drawn.
FACTS: dict[Topic, float] = {
    arithmetic: 5, colour_of: 2, capital: 2.5, animal: 2, opposite: 1.5, following: 2, mixture: 0.7, counting: 0.5,
    about_polygrad: 1.5, about_itself: 1.5, strange: 1.5,
}  # fmt: skip
TALK: dict[Topic, float] = {politeness: 1.5, entertainment: 1.5}
WISHES = ("count", "calculate", "explain", "tell", "write", "make")


def spoken(rng: random.Random, question: str) -> str:
    """A question as somebody types it."""
    is_wish = question.split()[0] in WISHES
    ends_with = "." if is_wish else "?"
    before = pick(rng, "||||||||please |please " if is_wish else "|||||||||hey, |tell me, |ok, ")
    text = f"{before}{question}"
    if rng.random() < 0.25:
        return text.lower() + pick(rng, f"|{ends_with}")
    return text[0].upper() + text[1:] + (ends_with if rng.random() < 0.8 else "")


def drawn(rng: random.Random, topics: dict[Topic, float]) -> Turn:
    """A question of one of the topics as somebody types it, and its answer."""
    (topic,) = rng.choices(list(topics), list(topics.values()))
    question, answer = topic(rng)
    return spoken(rng, question), answer


def introduction(rng: random.Random) -> tuple[Turn, Turn]:
    """Somebody says a name, and asks for it later."""
    name = rng.choice(NAMES)
    said = pick(
        rng, f"My name is {name}.|I am {name}.|Call me {name}.|Hello, I am {name}.|Hi, my name is {name}"
    )
    asked = pick(rng, "What is my name?|Do you know my name?|Who am I?|what is my name")
    return (said, f"Nice to meet you, {name}!"), (asked, f"Your name is {name}.")


def turns(rng: random.Random, count: int) -> list[Turn]:
    """Questions and answers of one dialogue."""
    out = [drawn(rng, FACTS | TALK) for _ in range(count)]
    if rng.random() < 0.15:
        said, asked = introduction(rng)
        out.insert(rng.randint(0, len(out)), said)
        if rng.random() < 0.7:
            out.insert(rng.randint(out.index(said) + 1, len(out)), asked)
    elif rng.random() < 0.03:
        out.insert(0, ("What is my name?", "I do not know your name yet. What is it?"))
    return out


def dialogues(count: int, seed: int = 0) -> Iterator[list[Message]]:
    """So many dialogues of one to four turns, as messages."""
    rng = random.Random(seed)
    for _ in range(count):
        yield [
            {"role": role, "content": text}
            for turn in turns(rng, rng.choice((1, 1, 2, 2, 3)))
            for role, text in zip(("user", "assistant"), turn)
        ]


def questions(count: int, seed: int) -> list[Turn]:
    """So many questions, each with its only answer."""
    rng = random.Random(seed)
    return [drawn(rng, FACTS) for _ in range(count)]
