"""What is done once, and what must not grow with the length of a thought. Work is counted, not timed."""

from __future__ import annotations

from typing import Any

import pytest

from mlx_reasoning import family, make_token_stream_decoder
from mlx_reasoning.decode import detokenizer as detokenizing
from mlx_reasoning.decode.tables import DecoderTables

from ..vocab import GEMMA, QWEN, byte_tokenizer

LONG = "one more step of the plan, " * 400


class Counting:
    """A tokenizer that counts how much it is asked to decode."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer, self.calls, self.longest = tokenizer, 0, 0

    def decode(self, ids: Any, **keywords: Any) -> Any:
        self.calls += 1
        self.longest = max(self.longest, len(ids) if hasattr(ids, "__len__") else 1)
        return self._tokenizer.decode(ids, **keywords)

    def __len__(self) -> int:
        return len(self._tokenizer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)


@pytest.mark.parametrize(("name", "opener", "closer"), [
    ("qwen3", "<think>", "</think>"), ("gemma4", "<|channel>thought\n", "<channel|>"),
    ("gpt-oss", "<|channel|>analysis<|message|>", "<|end|>"),
])  # fmt: skip
def test_a_stream_makes_one_detokenizer_and_never_decodes_its_past(
    name: str, opener: str, closer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    original = detokenizing.ByteVocabulary.stream

    def counting(self: Any) -> Any:
        made.append(1)
        return original(self)

    monkeypatch.setattr(detokenizing.ByteVocabulary, "stream", counting)
    frames = family(name).frames
    special = GEMMA if name == "gemma4" else [*(frames.markers if frames else ())]
    tokenizer = Counting(byte_tokenizer(QWEN if name == "qwen3" else [], special=special))
    tables = DecoderTables(tokenizer)
    decoder = make_token_stream_decoder(tokenizer, family(name), tables=tables)
    before = tokenizer.calls
    ids = tokenizer.encode(opener + LONG + closer + "b", add_special_tokens=False)
    shown = behind = 0
    for given, token in enumerate(ids, 1):  # a token is a character here
        shown += sum(len(getattr(event, "text", "")) for event in decoder.push(token))
        behind = max(behind, given - shown - len(opener))
    decoder.finish("stop")
    assert len(made) == 1
    assert tokenizer.calls == before and tokenizer.longest <= 64
    assert behind <= 64
