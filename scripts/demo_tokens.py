"""From lessons to token ids: the embedded model's tokenizer, and the batches that it is trained on.

Only what the model should write counts: the thought and the answer of the last turn. An answer without its thought, or
after one that was cut short, is mostly a guess, and counts for a tenth: its noise would drown what is left to learn.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from demo_data import TASKS, Lesson, Teacher, later, weather_tool
from demo_words import CITIES, WORDS
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

FOLDER = Path(__file__).resolve().parent.parent / "mlx_reasoning" / "demo"
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
ADDED = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
VOCABULARY = 512
WHOLE = (
    "system user assistant type function name description parameters object properties city string required get weather"
    " answer arguments temperature condition tools ones tens hundreds thousands carry smallest sort what which how"
).split()
"""Words that are one token without a space before them too."""
CLOSER = "\n</think>\n\n"
HURRY = (
    "\n\n Considering the limited time by the user, I have to give the solution based on the thinking directly now."
    "\n</think>\n\n"
)


def splitter() -> pre_tokenizers.PreTokenizer:
    """Single digits, then words with their leading space."""
    digits = pre_tokenizers.Split(Regex(r"\d"), "isolated")
    return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])


def build_tokenizer(lessons: list[Lesson]) -> PreTrainedTokenizerFast:
    """Bytes, and the whole words that save the most tokens; words whose letters are counted stay letters."""
    split = splitter()
    counts: Counter[str] = Counter()
    for lesson in lessons:
        text = "\n".join([lesson.thought, lesson.answer, *(str(m["content"]) for m in lesson.messages)])
        if lesson.tools:
            text += json.dumps(lesson.tools[0])
        counts.update(word for word, _ in split.pre_tokenize_str(text))
    counts.update({word: 1000 for word, _ in split.pre_tokenize_str(HURRY)})
    counts.update({word: 1000 for word, _ in split.pre_tokenize_str(tools_text("", ""))})
    for word in (*CITIES, *WORDS):
        counts.pop("Ġ" + word, None)  # copied or counted letter by letter
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    room = VOCABULARY - len(alphabet) - len(SPECIAL) - len(ADDED)
    useful = [
        word
        for word in counts
        if len(word) > 1 and "Ċ" not in word and (word[0] == "Ġ" or not word.isalpha() or word[0].isupper())
    ]
    useful = sorted(set(useful) - set(WHOLE), key=lambda word: (-counts[word] * (len(word) - 1), word))
    vocabulary = {token: at for at, token in enumerate([*alphabet, *WHOLE, *useful[: room - len(WHOLE)]])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in ADDED])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
    )


def prompt_text(lesson: Lesson, *, thinking: bool) -> str:
    """The prompt as the chat template renders it, without the cost of a template (a test holds the two together)."""
    messages, out = lesson.messages, []
    system = messages[0]["content"] if messages[0]["role"] == "system" else ""
    if lesson.tools:
        listed = "".join("\n" + json.dumps(tool, ensure_ascii=False) for tool in lesson.tools)
        system = tools_text(system + "\n\n" if system else "", listed)
    if system:
        out.append(turn("system", system))
    last_user = max(at for at, message in enumerate(messages) if message["role"] == "user")
    for at, message in enumerate(messages):
        if message["role"] == "user":
            out.append(turn("user", message["content"]))
        elif message["role"] == "tool":
            out.append(turn("user", f"<tool_response>\n{message['content']}\n</tool_response>"))
        elif message["role"] == "assistant":
            thought = message.get("reasoning_content") if at > last_user else None
            written = f"<think>\n{thought}{CLOSER}" if thought else ""
            written += message["content"] + "".join(call_text(c["function"]) for c in message.get("tool_calls", []))
            out.append(turn("assistant", written))
    return "".join(out) + "<|im_start|>assistant\n" + ("" if thinking else f"<think>\n{CLOSER}")


def tools_text(system: str, listed: str) -> str:
    call = '<tool_call>\n{"name": "...", "arguments": {...}}\n</tool_call>'
    return f"{system}You may call these tools:\n<tools>{listed}\n</tools>\nWrite a call like this:\n{call}"


def turn(role: str, text: str) -> str:
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


def call_text(call: dict[str, Any]) -> str:
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    return f'<tool_call>\n{{"name": "{call["name"]}", "arguments": {arguments}}}\n</tool_call>'


def answer_text(lesson: Lesson) -> str:
    return lesson.answer + (call_text(lesson.call) if lesson.call else "") + "<|im_end|>"


def lessons(seed: int, *, evaluation: bool = False) -> Iterator[Lesson]:
    teacher = Teacher(seed, evaluation=evaluation)
    makers, shares = zip(*TASKS.values(), strict=True)
    while True:
        lesson = teacher.random.choices(makers, shares)[0](teacher)
        if not lesson.tools and lesson.task != "small_talk" and teacher.random.random() < 0.06:
            lesson = replace(lesson, tools=[weather_tool(teacher)])
        yield later(teacher, lesson) if teacher.random.random() < 0.3 else lesson


GUESS = 0.1


def examples(seed: int, encode: Any) -> Iterator[tuple[list[int], list[float]]]:
    """Token ids of one lesson, and what each counts."""
    dice = random.Random(seed + 1)
    for lesson in lessons(seed):
        roll = dice.random()
        prompt = prompt_text(lesson, thinking=roll >= 0.03)
        answer = encode(answer_text(lesson))
        if roll < 0.03:
            lead, learn = encode(prompt), answer
        elif roll < 0.05:
            thought = encode(lesson.thought)
            cut = thought[: dice.randrange(len(thought) + 1)]
            closer = CLOSER if dice.random() < 0.5 else HURRY
            lead, learn = encode(prompt + "<think>\n") + cut + encode(closer), answer
        else:
            lead, learn = encode(prompt), encode(f"<think>\n{lesson.thought}{CLOSER}") + answer
        guessed = roll < 0.05 and lesson.task != "small_talk"
        yield lead + learn, [0.0] * len(lead) + [GUESS if guessed else 1.0] * len(learn)


def batches(seed: int, tokenizer: PreTrainedTokenizerFast, size: int, parts: int) -> Iterator[list[tuple[Any, ...]]]:
    """Batches of `size` lessons in `parts` of similar length: ids (B, T) int32, padded, and what each counts, float32.

    One lesson a row: with a stranger's numbers before it, a model learns to copy far later.
    """
    inner = tokenizer.backend_tokenizer
    stream = examples(seed, lambda text: inner.encode(text, add_special_tokens=False).ids)
    while True:
        drawn = sorted((next(stream) for _ in range(size)), key=lambda example: len(example[0]))
        batch = []
        for first in range(0, size, size // parts):
            part = drawn[first : first + size // parts]
            ids = np.zeros((len(part), len(part[-1][0])), np.int32)
            counts = np.zeros(ids.shape, np.float32)
            for row, (tokens, learn) in enumerate(part):
                ids[row, : len(tokens)], counts[row, : len(tokens)] = tokens, learn
            batch.append((ids, counts))
        yield batch
