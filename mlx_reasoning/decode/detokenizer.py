"""Token ids to text: whole characters only, linear in the text, equal to decoding everything at once.

mlx-lm's own detokenizers append to one growing string, which is what makes them slow on long thoughts. Vocabularies
of bytes (byte-level BPE, and sentencepiece with byte fallback) are read once into a table of bytes; any other decoder
is asked again with a bounded window of ids. Nothing here knows markers or protocols.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

_WINDOW = 32
_SPACE = "\u2581"


class Detokenizer(Protocol):
    """One stream of token ids."""

    def push(self, token: int) -> str:
        """The characters that are complete after this token."""

    def finish(self) -> str:
        """What was held back; bytes that never became a character are replaced."""

    @property
    def state(self) -> object | None:
        """Everything that the next token depends on, to compare and to `restore`; None where that is not bounded."""

    def restore(self, state: Any) -> None:
        """Goes back to a state of this stream, or of another one of the same vocabulary."""

    @property
    def settled(self) -> bool:
        """Nothing waits, so that `plain` is what the next token gives."""

    def plain(self, token: int) -> str | None:
        """The token's text if that is the same wherever the token stands, else None."""


class ByteVocabulary:
    """The bytes of every token: byte-level BPE, where any token may hold a part of a character.

    Args:
        pieces: one entry an id, empty for ids that the vocabulary does not have.
    """

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces

    def stream(self) -> Detokenizer:
        return _ByteStream(self)


class _ByteStream:
    def __init__(self, vocabulary: ByteVocabulary) -> None:
        self._pieces = vocabulary.pieces
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def state(self) -> object | None:
        return self._decoder.getstate()

    def restore(self, state: Any) -> None:
        self._decoder.setstate(state)

    @property
    def settled(self) -> bool:
        return not self._decoder.getstate()[0]

    def push(self, token: int) -> str:
        return self._decoder.decode(self._pieces[token] if 0 <= token < len(self._pieces) else b"")

    def finish(self) -> str:
        return self._decoder.decode(b"", final=True)

    def plain(self, token: int) -> str | None:
        try:
            return self._pieces[token].decode("utf-8") if token >= 0 else None
        except (UnicodeDecodeError, IndexError):
            return None


class FallbackVocabulary:
    """Whole strings, with single bytes (`<0xE2>`) for what the vocabulary lacks: sentencepiece.

    Args:
        pieces: one entry an id: a string, or an int for a byte.
        strip_first_space: the decoder drops one space at the very beginning of a text (Llama 2, Mistral).

    Limits: one-shot decoding replaces a whole run of byte tokens if any of it is invalid; here the characters that
        were complete before the first invalid byte have been handed out already.
    """

    def __init__(self, pieces: list[str | int], *, strip_first_space: bool = False) -> None:
        self.pieces = pieces
        self.strip_first_space = strip_first_space

    def stream(self) -> Detokenizer:
        return _FallbackStream(self)


class _FallbackStream:
    def __init__(self, vocabulary: FallbackVocabulary) -> None:
        self._pieces = vocabulary.pieces
        self._strip = vocabulary.strip_first_space
        self._bytes = b""
        self._invalid = False  # the running row of bytes is no text

    @property
    def state(self) -> object | None:
        return self._bytes, self._invalid, self._strip

    def restore(self, state: Any) -> None:
        self._bytes, self._invalid, self._strip = state

    @property
    def settled(self) -> bool:
        return not (self._bytes or self._invalid or self._strip)

    def push(self, token: int) -> str:
        piece = self._pieces[token] if 0 <= token < len(self._pieces) else ""
        if isinstance(piece, int):
            return self._first(self._byte(piece))
        text = self._lost() + piece
        self._invalid = False
        return self._first(text)

    def finish(self) -> str:
        return self._first(self._lost())

    def plain(self, token: int) -> str | None:
        piece = self._pieces[token] if 0 <= token < len(self._pieces) else None
        return piece if isinstance(piece, str) else None

    def _byte(self, byte: int) -> str:
        self._bytes += bytes([byte])
        if not self._invalid:
            try:
                text = self._bytes.decode("utf-8")
            except UnicodeDecodeError as error:
                if error.reason == "unexpected end of data":
                    return ""
                self._invalid = True
            else:
                self._bytes = b""
                return text
        return self._lost()

    def _lost(self) -> str:
        count, self._bytes = len(self._bytes), b""
        return "\ufffd" * count

    def _first(self, text: str) -> str:
        if self._strip and text:
            self._strip = False
            return text.removeprefix(" ")
        return text


class WindowVocabulary:
    """Any other tokenizer: the newest ids are decoded again with a few before them, so the cost per token is bounded.

    Limits: equal to one-shot decoding for decoders that look at most a window back, which all known ones do.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def stream(self) -> Detokenizer:
        return _WindowStream(self.tokenizer)


class _WindowStream:
    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._ids: list[int] = []
        self._sent = 0  # characters of decode(self._ids) that were handed out

    @property
    def state(self) -> object | None:
        return None

    def restore(self, state: Any) -> None:
        raise TypeError("this stream has no states")

    @property
    def settled(self) -> bool:
        return False

    def push(self, token: int) -> str:
        self._ids.append(token)
        text = self._decode(self._ids)
        if text.endswith("\ufffd") and len(self._ids) < 2 * _WINDOW:
            return ""
        new = text[self._sent :]
        self._sent = len(text)
        if len(self._ids) >= 2 * _WINDOW:
            self._ids = self._ids[-_WINDOW:]
            self._sent = len(self._decode(self._ids))
        return new

    def finish(self) -> str:
        new = self._decode(self._ids)[self._sent :]
        self._ids, self._sent = [], 0
        return new

    def plain(self, token: int) -> str | None:
        return None

    def _decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))


def byte_decoder() -> dict[str, int]:
    """The characters by which byte-level BPE writes bytes (GPT-2's: printable Latin-1 as itself, the rest after)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(256 + n): b for n, b in enumerate(others)}


Vocabulary: TypeAlias = ByteVocabulary | FallbackVocabulary | WindowVocabulary


def vocabulary_of(tokenizer: Any) -> Vocabulary:
    """The vocabulary of a Hugging Face tokenizer (or mlx-lm's wrapper around one).

    Its decoder decides: ByteLevel, or sentencepiece's Replace/ByteFallback/Fuse with or without Strip, are read
    into bytes; anything else is decoded by the tokenizer itself.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return WindowVocabulary(tokenizer)
    decoder = json.loads(backend.to_str())["decoder"] or {}
    steps = decoder.get("decoders", [decoder])
    kinds = [step.get("type") for step in steps]
    if type(tokenizer).__name__ == "NewlineTokenizer":  # mlx-lm's: <n> stands for a newline
        return WindowVocabulary(tokenizer)
    size = len(tokenizer)
    tokens: list[str | None] = tokenizer.convert_ids_to_tokens(list(range(size)))
    if kinds == ["ByteLevel"]:
        table = byte_decoder()
        return ByteVocabulary([_byte_level(token, table) for token in tokens])
    if kinds[:3] == ["Replace", "ByteFallback", "Fuse"] and steps[0].get("pattern") == {"String": _SPACE}:
        strip = kinds[3:] == ["Strip"] and steps[3].get("start") == 1
        if strip or not kinds[3:]:
            return FallbackVocabulary([_sentencepiece(token) for token in tokens], strip_first_space=strip)
    return WindowVocabulary(tokenizer)


def _byte_level(token: str | None, table: dict[str, int]) -> bytes:
    if token is None:
        return b""
    try:
        return bytes([table[c] for c in token])
    except KeyError:  # an added token, written as it is
        return token.encode()


def _sentencepiece(token: str | None) -> str | int:
    if token is None:
        return ""
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        return int(token[3:5], 16)
    return token.replace(_SPACE, " ")
