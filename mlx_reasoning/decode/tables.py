"""What all streams of one model share: bytes, marker ids, and what each token did where it was met before.

A stream's state between two tokens is nearly always one of a few dozen (in the middle of a thought; behind its closer;
at the start of a line). So what a token does in a state is remembered, and the next stream that meets the same token in
the same state looks it up instead of searching. The tables fill as tokens are met, and are bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

from ..errors import OptionError
from ..events import Generation, GenerationEvent
from ..protocols.config import FrameProtocol, ReasoningConfig, StartState, ToolCallFormat
from .detokenizer import Vocabulary, WindowVocabulary, vocabulary_of
from .frames import FramedEmitter, FrameMarks
from .marks import Marks
from .reasoning import ReasoningEventEmitter
from .scan import Scanner
from .stop import Marker

Emitter: TypeAlias = ReasoningEventEmitter | FramedEmitter
StopScope: TypeAlias = Literal["all", "response"]
Flow: TypeAlias = Literal["reasoning", "response"]
_MOST_MOVES = 1 << 17
_MOST_LAYOUTS = 16


class Node(dict[int, "Move"]):
    """A state, and what the tokens met in it did.

    Args:
        key: everything the next token depends on; None for the one node that stands for "no remembered state".
        flow: the kind of text that passes unchanged here.
        inside: whether it is inside a thought.
    """

    __slots__ = ("flow", "inside", "key")

    def __init__(self, key: Any, flow: Flow | None, inside: bool) -> None:
        super().__init__()
        self.key, self.flow, self.inside = key, flow, inside


Move: TypeAlias = tuple[tuple[GenerationEvent, ...], Node, int]
"""The events, the next state, and how many tokens the thought's count grows by."""

NOWHERE = Node(None, None, False)


class DecoderTables:
    """The vocabulary's bytes, and a layout for each combination of options that was asked for lately."""

    def __init__(self, tokenizer: Any) -> None:
        self.vocabulary: Vocabulary = vocabulary_of(tokenizer)
        self._ids: dict[str, int] = dict(tokenizer.get_vocab())
        self._layouts: dict[object, Layout] = {}

    def layout(
        self,
        protocol: ReasoningConfig | FrameProtocol | None,
        calls: ToolCallFormat | None,
        stops: tuple[str, ...],
        scope: StopScope,
    ) -> Layout:
        key = (protocol, calls, stops, scope)
        found = self._layouts.get(key)
        if found is None:
            if len(self._layouts) >= _MOST_LAYOUTS:  # streams under way keep the layout they have
                self._layouts = {}
            found = self._layouts[key] = Layout(protocol, calls, stops, scope, self._ids)
        return found


# A memo, not state: it only saves reading a vocabulary again for a tokenizer that is still in use.
_MEMO: WeakKeyDictionary[Any, DecoderTables] = WeakKeyDictionary()


def tables_of(tokenizer: Any) -> DecoderTables:
    """The tokenizer's tables, made once."""
    found = _MEMO.get(tokenizer)
    if found is None:
        found = DecoderTables(tokenizer)
        if not isinstance(found.vocabulary, WindowVocabulary):  # which would keep its own key alive
            _MEMO[tokenizer] = found
    return found


class Layout:
    """The markers by id and by text for one combination of options, and the states that its streams were in."""

    def __init__(
        self,
        protocol: ReasoningConfig | FrameProtocol | None,
        calls: ToolCallFormat | None,
        stops: tuple[str, ...],
        scope: StopScope,
        ids: Mapping[str, int],
    ) -> None:
        self.markers = _markers(protocol, calls, ids)
        self._protocol, self._calls = protocol, calls
        by_id = {marker.text for marker in self.markers.values()}
        self.marks: Marks | FrameMarks = (
            FrameMarks(protocol, calls, by_id) if isinstance(protocol, FrameProtocol) else Marks(protocol, calls, by_id)
        )
        scanner = Scanner(stops)
        self._thought = (self.marks.thought, scanner) if scope == "all" else (self.marks.thought,)
        self._answer = (self.marks.answer, scanner)
        self._nodes: dict[object, Node] = {}
        self._moves = 0

    def emitter(self, start: StartState | bool) -> Emitter | None:
        """The splitter for one stream; None where there is nothing to split."""
        if isinstance(self.marks, FrameMarks):
            return FramedEmitter(self.marks, start)
        if isinstance(self._protocol, FrameProtocol) or (self._protocol is None and self._calls is None):
            return None
        return ReasoningEventEmitter(self._protocol, start, marks=self.marks)

    def node(self, key: object, flow: Flow | None, inside: bool) -> Node:
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = Node(key, flow, inside)
        return found

    def remember(self, node: Node, token: int, move: Move) -> None:
        if self._moves >= _MOST_MOVES:  # start over; streams under way keep the nodes they stand on
            self._nodes, self._moves = {}, 0
        node[token] = move
        self._moves += 1

    def plain(self, node: Node, token: int, text: str | None) -> Move | None:
        """The move of a token whose text passes unchanged where text flows, or None if that takes a closer look."""
        if not text or text[-1].isspace() or token in self.markers:
            return None
        if node.flow == "reasoning":
            if text[-1] == "`" or any(scanner.touches(text) for scanner in self._thought):
                return None
            return (Generation.reasoning(text),), node, 1
        if (self.marks.tracks_lines and "\n" in text) or any(scanner.touches(text) for scanner in self._answer):
            return None
        return (Generation.chunk(text),), node, 0


def _markers(
    config: ReasoningConfig | FrameProtocol | None, calls: ToolCallFormat | None, ids: Mapping[str, int]
) -> dict[int, Marker]:
    """The markers that are one token each.

    Raises:
        OptionError: detection is "token", and the vocabulary lacks the thought's markers.
    """
    if isinstance(config, FrameProtocol):
        return {ids[text]: Marker(text) for text in config.markers if text in ids}
    if config is not None and config.detection == "text":
        return {}
    texts: list[str] = []
    if config is not None:
        texts += [*config.starts, *config.ends, *config.end_of_turn, *config.dropped]
        texts += [text for frame in config.answer_frames for text in (frame.start, frame.end)]
        if config.detection == "token":
            missing = [text for text in (*config.starts[:1], config.end_delimiter) if text not in ids]
            if missing:
                raise OptionError(f"detection='token', but {missing[0]!r} is no token of this vocabulary: use 'auto'")
    if calls is not None:
        texts += [*calls.openers, *calls.closers]
    return {ids[text]: Marker(text) for text in texts if text in ids}
