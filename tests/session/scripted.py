"""A session whose model says what a test tells it to, token by token through the real model and its real cache."""

from __future__ import annotations

from typing import Any

from mlx_reasoning import ChatSession, LoadedModel
from mlx_reasoning.session.rounds import Prepared

END = {"qwen3": "<|im_end|>", "qwen3_5": "<|im_end|>", "gemma4_text": "<turn|>", "llama": "<|im_end|>"}


def told(session: ChatSession, *texts: str) -> list[Prepared]:
    """Makes the next rounds of a session write these texts; gives the prepared rounds as they come."""
    waiting, rounds = list(texts), []
    prepare = type(session._context).prepare

    def forced(*arguments: Any) -> Prepared:
        prepared = prepare(session._context, *arguments)
        rounds.append(prepared)
        if waiting:
            ids = session.model.tokenizer.encode(waiting.pop(0), add_special_tokens=False)
            prepared.turn.loop.force(ids)
        return prepared

    setattr(session._context, "prepare", forced)  # noqa: B010
    return rounds


def thought(kind: str, reasoning: str, answer: str) -> str:
    """A turn as the tiny checkpoint of this kind would write it, its end included."""
    end = END[kind]
    if kind == "gemma4_text":
        return f"<|channel>thought\n{reasoning}<channel|>{answer}{end}" if reasoning else f"{answer}{end}"
    if kind == "llama":
        return f"{answer}{end}"
    opener = "" if kind == "qwen3_5" else "<think>\n"
    return f"{opener}{reasoning}\n</think>\n\n{answer}{end}"


def prompt_ids(model: LoadedModel, messages: list[dict[str, Any]], **arguments: Any) -> list[int]:
    """What the checkpoint's template makes of messages, without our renderer."""
    plain = model.tokenizer._tokenizer
    text = plain.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **arguments)
    return list(plain.encode(text, add_special_tokens=False))


def shared(one: list[int], other: list[int]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
