"""A real tokenizer, made in a moment: one token a byte, and the added tokens that a test wants."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

CHATML = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
QWEN = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
GEMMA = [
    "<bos>",
    "<|turn>",
    "<turn|>",
    "<|channel>",
    "<channel|>",
    "<|think|>",
    "<|tool_call>",
    "<tool_call|>",
    '<|"|>',
]


def byte_tokenizer(
    added: Iterable[str] = (),
    *,
    special: Iterable[str] = CHATML,
    words: Iterable[str] = (),
    template: str | None = None,
) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer.

    Args:
        added: added tokens that survive skipping of special ones.
        special: added tokens that are special.
        words: whole words, each one token where the tokenizer meets it alone or behind a space.
        template: the chat template.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {char: at for at, char in enumerate(alphabet)}
    for word in words:
        for spelling in (word, "Ġ" + word):
            vocabulary.setdefault(spelling, len(vocabulary))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in added])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False)
    if template is not None:
        fast.chat_template = template
    return fast


def spelled(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    """The ids of a text in ordinary tokens only, so that a marker is just its characters."""
    alphabet = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces = [char for piece, _ in alphabet.pre_tokenize_str(text) for char in piece]
    return [tokenizer.convert_tokens_to_ids(piece) for piece in pieces]
