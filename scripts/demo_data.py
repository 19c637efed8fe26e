"""The lessons of the embedded model: questions, thoughts and answers, made by rule from a seed.

A lesson is a conversation whose last turn the model should write. What evaluation asks (pairs of numbers, words, lists,
cities, phrasings) is told from what training asks by a hash, so that no wording of it is ever trained on.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

from demo_words import CITIES, CONDITIONS, GREETINGS, OTHER_TASKS, TOPICS, WORDS

HELLO = "Hello! I am a tiny demo model. I can add, subtract, compare numbers, count letters and sort short lists."
CANNOT = (
    "Sorry, I am only a tiny demo model and I cannot do that."
    " I can add, subtract, compare numbers, count letters and sort short lists."
)
WEATHER_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The current weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
_TOOL_SAYS = (
    "The current weather in a city.", "Get the current weather in a city.", "Gets the weather.", "Gives the weather in a city.",
    "Get the weather of a city today.", "Tells the weather.", "Look up the weather in a city.", "Weather for a city.",
)  # fmt: skip
_CITY_SAYS = (
    "The city.", "The name of the city.", "A city.", "Name of a city.", "The city to look up.", "The city, such as Paris.",
    "Where.", "City name.", "The place to tell the weather of.",
)  # fmt: skip
PLACES = ("ones", "tens", "hundreds", "thousands")


@dataclass(frozen=True)
class Lesson:
    """A conversation and the turn to learn; `answer` is "" where the turn is a tool call."""

    task: str
    messages: list[dict[str, Any]]
    thought: str
    answer: str
    tools: list[dict[str, Any]] = field(default_factory=list)
    call: dict[str, Any] | None = None


def held_out(*key: object) -> bool:
    """Whether this is for evaluation only: one key in ten, the same on every machine."""
    return zlib.crc32(repr(key).encode()) % 10 == 0


class Teacher:
    """Makes lessons.

    Args:
        seed: of the random numbers.
        evaluation: ask only what is held out, and nothing of it otherwise.
    """

    def __init__(self, seed: int, *, evaluation: bool = False) -> None:
        self.random = random.Random(seed)
        self.evaluation = evaluation

    def draw(self, make: Callable[[], Any], *, common: Collection[Any] = ()) -> Any:
        """Draws until the hash puts it on our side; what is `common` is always for training."""
        while True:
            value = make()
            if (held_out(value) and value not in common) == self.evaluation:
                return value

    def number(self) -> int:
        digits = self.random.choice((1, 1, 2, 2, 3, 3, 3, 4, 4, 4))
        return self.random.randrange(10 ** (digits - 1) if digits > 1 else 0, 10**digits)

    def hard(self, share: float) -> bool:
        """Whether to ask what a small model gets wrong most: a share of the lessons, nothing of the evaluation."""
        return not self.evaluation and self.random.random() < share

    def pair(self, *, near: bool = False) -> tuple[int, int]:
        """Two numbers; `near` ones have the places on the left in common, or all of them."""

        def close() -> tuple[int, int]:
            a = self.number()
            width = 10 ** self.random.randrange(len(str(a)))
            return a, abs(a + self.random.randint(-9, 9) * width) % 10000

        return self.draw(close if near or self.hard(0.2) else lambda: (self.number(), self.number()))

    def word(self) -> str:
        if self.hard(0.15):
            return self.draw(lambda: self.invented(1, 2) * 2)
        return self.draw(lambda: self.random.choice(WORDS) if self.random.random() < 0.5 else self.invented(2, 4))

    def invented(self, low: int, high: int) -> str:
        syllable = ("ba be bi bo bu ca ce co cu da de di do du fa fe fi fo ga ge go gu ha he hi ho ja jo ka ke ki ko la le"
                    " li lo lu ma me mi mo mu na ne ni no nu pa pe pi po qua ra re ri ro ru sa se si so su ta te ti to tu va"
                    " ve vi wa we wi xa ya yo za ze zo ss rr tt ll nn er an in st th").split()  # fmt: skip
        return "".join(self.random.choice(syllable) for _ in range(self.random.randint(low, high)))

    def say(self, *phrasings: str, **parts: object) -> str:
        """One of the phrasings, filled in, sometimes in lower case or without its mark at the end."""
        text = self.random.choice(phrasings)
        roll = self.random.random()
        if roll < 0.15:
            text = text[0].lower() + text[1:]
        if roll > 0.8:
            text = text.rstrip("?.!")
        return text.format(**parts)

    def user(self, text: str) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = [{"role": "user", "content": text}]
        if self.random.random() < 0.15:
            prompts = ("Be brief.", "You are a helpful assistant.", "Answer exactly.", "You are a friendly assistant.")
            messages.insert(0, {"role": "system", "content": self.random.choice(prompts)})
        return messages


# Thoughts, written as small mechanical steps.


def add_thought(a: int, b: int) -> str:
    width = max(len(str(a)), len(str(b)))
    left, right = str(a).zfill(width), str(b).zfill(width)
    lines, carry, done = [f"{left}+{right}"], 0, ""
    for place in range(width):
        x, y = int(left[-1 - place]), int(right[-1 - place])
        total = x + y + carry
        done = str(total % 10) + done
        lines.append(f"{PLACES[place]} {x}+{y}+{carry}={total} so {done}")
        carry = total // 10
    return "\n".join(lines) + f"\ncarry {carry} so {a + b}"


def subtract_thought(a: int, b: int) -> str:
    width = max(len(str(a)), len(str(b)))
    big, small = max(a, b), min(a, b)
    left, right = str(big).zfill(width), str(small).zfill(width)
    compared, sign = compare_steps(a, b)
    lines = [compared, f"{left}-{right}" + (" negative" if sign == "<" else "")]
    borrow, done = 0, ""
    for place in range(width):
        x, y = int(left[-1 - place]), int(right[-1 - place])
        total = x - y - borrow
        done = str(total % 10) + done
        lines.append(f"{PLACES[place]} {x}-{y}-{borrow}={total} so {done}")
        borrow = int(total < 0)
    return "\n".join(lines) + f"\nSo {a - b}"


def compare_steps(a: int, b: int) -> tuple[str, str]:
    """The places from the left until they differ, and the sign."""
    width = max(len(str(a)), len(str(b)))
    left, right = str(a).zfill(width), str(b).zfill(width)
    lines, sign = [f"{left} and {right}"], "="
    for place, x, y in zip(reversed(PLACES[:width]), left, right, strict=True):
        sign = "<" if x < y else ">" if x > y else "="
        lines.append(f"{place} {x}{sign}{y}")
        if sign != "=":
            break
    return "\n".join(lines), sign


def count_thought(letter: str, word: str) -> str:
    steps, count = [], 0
    for char in word:
        count += char == letter
        steps.append(f"{char}{count}")
    return f"{letter} in: " + " ".join(steps) + f". So {count}."


def sort_thought(numbers: list[int]) -> str:
    left, lines = [f"{n:02d}" for n in numbers], []
    for number in sorted(left):
        lines.append(" ".join(left) + f": smallest {number}")
        left[left.index(number)] = "--"  # rows of one length are copied column by column
    return "\n".join(lines) + "\nSo " + ", ".join(map(str, sorted(numbers))) + "."


# Tasks.


def later(teacher: Teacher, lesson: Lesson) -> Lesson:
    """The same question after one to three others that have nothing to do with it."""
    makers, shares = zip(*TASKS.values(), strict=True)
    before: list[dict[str, Any]] = []
    tools = lesson.tools
    for _ in range(teacher.random.choice((1, 1, 1, 2, 2, 3))):
        other = teacher.random.choices(makers, shares)[0](teacher)
        if other.call is None:
            said = [message for message in other.messages if message["role"] != "system"]
            before += [*said, {"role": "assistant", "content": other.answer}]
            tools = tools or other.tools
    system = [message for message in lesson.messages if message["role"] == "system"]
    return replace(lesson, messages=[*system, *before, *lesson.messages[len(system) :]], tools=tools)


def _json(teacher: Teacher, text: str) -> tuple[str, bool]:
    if teacher.random.random() < 0.12:
        how = ("{} Answer in JSON.", "{} Reply as JSON.", "{} Give the answer as JSON.", "{} JSON please.")
        return teacher.random.choice(how).format(text), True
    return text, False


def _finish(teacher: Teacher, task: str, text: str, thought: str, value: object, answer: str) -> Lesson:
    text, as_json = _json(teacher, text)
    if as_json:
        thought, answer = thought + " As JSON.", json.dumps({"answer": value})
    return Lesson("json" if as_json else task, teacher.user(text), thought, answer)


def add(teacher: Teacher) -> Lesson:
    a, b = teacher.pair()
    text = teacher.say(
        "What is {a} + {b}?", "{a} + {b}", "{a}+{b}", "{a} + {b} =", "{a}+{b}=?", "Add {a} and {b}.", "What's {a} plus {b}?",
        "Calculate {a} + {b}.", "How much is {a} + {b}?", "Please add {a} and {b}.", "What is the sum of {a} and {b}?",
        "Can you tell me what {a} plus {b} is?", "Compute {a}+{b}", "What is {a}+{b}?", a=a, b=b,
    )  # fmt: skip
    return _finish(teacher, "add", text, add_thought(a, b), a + b, f"{a} + {b} = {a + b}")


def subtract(teacher: Teacher) -> Lesson:
    a, b = teacher.pair()
    text = teacher.say(
        "What is {a} - {b}?", "{a} - {b}", "{a}-{b}", "{a} - {b} =", "Subtract {b} from {a}.", "What's {a} minus {b}?",
        "Calculate {a} - {b}.", "How much is {a} - {b}?", "Take {b} away from {a}.", "What is {a} minus {b}?",
        "What is the difference {a} - {b}?", "Compute {a}-{b}", "What is {a}-{b}?", a=a, b=b,
    )  # fmt: skip
    return _finish(teacher, "subtract", text, subtract_thought(a, b), a - b, f"{a} - {b} = {a - b}")


def compare(teacher: Teacher) -> Lesson:
    a, b = teacher.pair(near=teacher.random.random() < 0.5)
    larger = teacher.random.random() < 0.5
    word = teacher.random.choice(("larger", "bigger", "greater") if larger else ("smaller", "less", "lower"))
    text = teacher.say(
        "Which is {w}, {a} or {b}?", "Which number is {w}: {a} or {b}?", "{a} or {b}, which is {w}?", "What is {w}, {a} or {b}?",
        "Compare {a} and {b}. Which is {w}?", "Which one is {w}? {a} or {b}?", w=word, a=a, b=b,
    )  # fmt: skip
    steps, sign = compare_steps(a, b)
    value = max(a, b) if larger else min(a, b)
    answer = f"{a} and {b} are equal." if sign == "=" else f"{value} is {word}."
    return _finish(teacher, "compare", text, f"{steps}. {word}: {value}.", value, answer)


def count(teacher: Teacher) -> Lesson:
    word = teacher.word()
    letter = teacher.random.choice(word if teacher.random.random() < 0.85 else "abcdefghilmnoprstuvw")
    if teacher.hard(0.35):
        letter = max(word, key=word.count)
    text = teacher.say(
        'How many {l}\'s are in "{w}"?', "How many {l} are in {w}?", "How many times does {l} appear in {w}?",
        'Count the letter {l} in "{w}".', "How many {l} in {w}?", "How many {l}'s in {w}?",
        "How often is the letter {l} in the word {w}?", "Count the {l}'s in {w}.", l=letter, w=word,
    )  # fmt: skip
    value = word.count(letter)
    return _finish(teacher, "count", text, count_thought(letter, word), value, f"{value}")


def sort(teacher: Teacher) -> Lesson:
    def numbers() -> tuple[int, ...]:
        size = teacher.random.randint(3, 5)
        if teacher.hard(0.4):
            least = teacher.random.randrange(80)
            return tuple(teacher.random.sample(range(least, least + 20), size))
        if teacher.random.random() < 0.9:
            return tuple(teacher.random.sample(range(100), size))
        return tuple(teacher.random.choices(range(100), k=size))

    drawn = list(teacher.draw(numbers))
    listed = teacher.random.choice((", ", " ")).join(map(str, drawn))
    text = teacher.say(
        "Sort {x}.", "Sort these numbers: {x}", "Put {x} in order.", "Sort the list {x}.", "Order {x} from small to large.",
        "Sort [{x}]", "Please sort {x}", "sort {x}", x=listed,
    )  # fmt: skip
    value = sorted(drawn)
    return _finish(teacher, "sort", text, sort_thought(drawn), value, ", ".join(map(str, value)))


def _city(teacher: Teacher) -> str:
    def name() -> str:
        city = teacher.random.choice(CITIES) if teacher.random.random() < 0.4 else teacher.invented(2, 4).capitalize()
        return (
            f"{teacher.random.choice(('New', 'San', 'Port', 'Old'))} {city}" if teacher.random.random() < 0.1 else city
        )

    return str(teacher.draw(name))


def weather_tool(teacher: Teacher) -> dict[str, Any]:
    """The tool as people declare it: the plain one, or one with other words and a word about its argument."""
    if teacher.random.random() < 0.3:
        return WEATHER_TOOL
    city: dict[str, Any] = {"type": "string"}
    if teacher.random.random() < 0.8:
        city["description"] = teacher.random.choice(_CITY_SAYS)
    parameters = {"type": "object", "properties": {"city": city}, "required": ["city"]}
    says = teacher.random.choice(_TOOL_SAYS)
    return {"type": "function", "function": {"name": "get_weather", "description": says, "parameters": parameters}}


def _weather_question(teacher: Teacher, city: str) -> str:
    return teacher.say(
        "What is the weather in {c}?", "What's the weather like in {c}?", "Weather in {c}?", "How is the weather in {c}?",
        "Tell me the weather in {c}.", "Is it raining in {c}?", "How warm is it in {c}?", "What is the weather in {c} today?",
        c=city,
    )  # fmt: skip


def weather(teacher: Teacher) -> Lesson:
    city = _city(teacher)
    call = {"name": "get_weather", "arguments": {"city": city}}
    thought = f"The user asks for the weather in {city}. I call get_weather."
    return Lesson(
        "tool_call", teacher.user(_weather_question(teacher, city)), thought, "", [weather_tool(teacher)], call
    )


def weather_answer(teacher: Teacher) -> Lesson:
    city = _city(teacher)
    degrees = teacher.random.randint(-19, 39)
    sky = teacher.random.choice(CONDITIONS)
    results = (
        json.dumps({"city": city, "temperature": degrees, "condition": sky}),
        json.dumps({"temperature": degrees, "condition": sky}),
        json.dumps({"condition": sky, "temperature": degrees}),
        f"{sky}, {degrees} C",
        f"{degrees} degrees and {sky}",
    )
    messages = teacher.user(_weather_question(teacher, city))
    call = {"name": "get_weather", "arguments": {"city": city}}
    asked: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": call}]}
    if teacher.random.random() < 0.8:
        asked["reasoning_content"] = f"The user asks for the weather in {city}. I call get_weather."
    messages += [asked, {"role": "tool", "content": teacher.random.choice(results)}]
    answer = f"It is {sky} and {degrees} degrees in {city}."
    return Lesson(
        "tool_answer", messages, f"The tool says {sky} and {degrees} degrees.", answer, [weather_tool(teacher)]
    )


def second_turn(teacher: Teacher) -> Lesson:
    if teacher.random.random() < 0.3:
        return _second_count(teacher)
    a, b = teacher.pair()
    messages, value, _ = _step(teacher, a, b, first=True)
    if 0 <= value <= 9999 and not teacher.evaluation and teacher.random.random() < 0.25:
        more, value, _ = _step(teacher, value, teacher.number(), first=False)
        messages += more
    if not 0 <= value <= 9999:
        return second_turn(teacher)
    c = teacher.draw(lambda: (value, teacher.number()))[1]
    (ask, said), _, thought = _step(teacher, value, c, first=False)
    asked = teacher.user(messages[0]["content"]) + messages[1:]
    return Lesson("second_turn", [*asked, ask], thought, said["content"])


def _step(teacher: Teacher, a: int, b: int, *, first: bool) -> tuple[list[dict[str, Any]], int, str]:
    """A sum, or one more step of it, with its answer; what it comes to; and the thought."""
    plus = teacher.random.random() < 0.5
    if first:
        text = teacher.say("What is {a} {o} {b}?", "{a} {o} {b}", a=a, b=b, o="+" if plus else "-")
    elif plus:
        text = teacher.say("And plus {c}?", "Now add {c} to that.", "Plus {c}?", "Add {c} to it.", "And + {c}?", c=b)
    else:
        text = teacher.say(
            "And minus {c}?", "Now subtract {c} from that.", "Minus {c}?", "Take away {c}.", "And - {c}?", c=b
        )
    value = a + b if plus else a - b
    said = {"role": "assistant", "content": f"{a} {'+' if plus else '-'} {b} = {value}"}
    return [{"role": "user", "content": text}, said], value, (add_thought if plus else subtract_thought)(a, b)


def _second_count(teacher: Teacher) -> Lesson:
    first = count(teacher)
    while first.task != "count":
        first = count(teacher)
    word = first.thought.partition("in: ")[2].rpartition(". So")[0]
    word = "".join(char for char in word if char.isalpha())
    letter = teacher.random.choice(word)
    ask = teacher.say("And how many {l}'s?", "And {l}?", "How many {l}'s?", "And how many {l}?", l=letter)
    messages = [*first.messages, {"role": "assistant", "content": first.answer}, {"role": "user", "content": ask}]
    return Lesson("second_turn", messages, count_thought(letter, word), str(word.count(letter)))


def greeting(teacher: Teacher) -> Lesson:
    text = teacher.draw(
        lambda: " ".join(part for part in (teacher.random.choice(c) for c in GREETINGS) if part), common=GREETINGS[0]
    )
    if teacher.random.random() < 0.3:
        text = text.lower()
    text += teacher.random.choice(("", "!", ".", "?"))
    return Lesson("small_talk", teacher.user(text), "A greeting. I say hello.", HELLO)


def cannot(teacher: Teacher) -> Lesson:
    roll = teacher.random.random()
    if roll < 0.05:
        text = _weather_question(teacher, _city(teacher))  # no tool was given
    elif roll < 0.7:
        text = teacher.draw(lambda: teacher.random.choice(OTHER_TASKS).format(t=teacher.random.choice(TOPICS)))
    elif roll < 0.85:
        text = teacher.draw(lambda: _too_hard(teacher))
    elif roll < 0.9:
        alphabet = teacher.random.choice(
            (range(0x20, 0x7F), range(0xC0, 0x180), range(0x400, 0x450), range(0x4E00, 0x9000))
        )
        size = teacher.random.randint(1, 8)
        text = teacher.draw(lambda: "".join(map(chr, teacher.random.choices(alphabet, k=size))).strip() or "?")
    else:
        size = teacher.random.randint(1, 6)
        text = teacher.draw(lambda: " ".join(teacher.invented(1, 4) for _ in range(size)))
    if teacher.random.random() < 0.3:
        text = text.lower()
    text += teacher.random.choice(("", "", "?", ".", "!"))
    return Lesson("small_talk", teacher.user(text), "I cannot do this. I say so.", CANNOT)


def _too_hard(teacher: Teacher) -> str:
    a, b, c = teacher.number(), teacher.number(), teacher.number()
    huge = teacher.random.randrange(10000, 10**7)
    other = teacher.random.choice(("*", "/", "x", "times", "divided by", "^", "%"))
    return teacher.random.choice((
        f"What is {a} {other} {b}?", f"{a} {other} {b}", f"{huge} + {a}", f"What is {huge} - {b}", f"{a} + {b} + {c}",
        f"What is {a}.5 + {b}", f"the square root of {a}", f"What is {a} + {huge}?", f"multiply {a} by {b}", f"{a}",
        f"is {a} prime?", f"factorial of {a}", f"{a} {b}", f"sort {teacher.invented(1, 2)} {teacher.invented(2, 3)}",
    ))  # fmt: skip


TASKS: dict[str, tuple[Callable[[Teacher], Lesson], float]] = {
    "add": (add, 3.0),
    "subtract": (subtract, 4.0),
    "compare": (compare, 4.0),
    "count": (count, 4.0),
    "sort": (sort, 6.0),
    "tool_call": (weather, 0.7),
    "tool_answer": (weather_answer, 0.9),
    "second_turn": (second_turn, 3.0),
    "greeting": (greeting, 0.5),
    "cannot": (cannot, 1.5),
}
"""Each task's maker and its share; JSON answers are part of the first five."""
