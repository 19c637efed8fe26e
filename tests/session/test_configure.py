"""Options that change for the turns that follow, and the counts that a person is shown."""

from __future__ import annotations

import pytest

from mlx_reasoning import ChatSession, Generation, LoadedModel, OptionError, ReasoningControlError

from ..sums import SUM, TWO_TURNS


def test_options_last_until_they_are_changed_again(demo: LoadedModel) -> None:
    chat = ChatSession(demo)
    chat.configure(thinking=False)
    assert not chat.respond(SUM[0]).reasoning
    chat.clear()
    chat.configure(thinking=None, max_reasoning_tokens=3)
    assert chat.respond(SUM[0]).usage.reasoning_tokens == 3
    chat.configure(max_reasoning_tokens=None)
    chat.clear()
    assert chat.respond(SUM[0]).content == SUM[1]


def test_what_cannot_be_is_refused_and_changes_nothing(demo: LoadedModel) -> None:
    chat = ChatSession(demo, thinking=False)
    before = dict(chat.options)
    with pytest.raises(OptionError):
        chat.configure(no_such_option=1)
    with pytest.raises(ReasoningControlError):
        chat.configure(effort="enormous")
    assert chat.options == before


def test_the_tokens_of_the_running_thought_and_of_the_context(demo: LoadedModel) -> None:
    chat = ChatSession(demo)
    counts = [chat.reasoning_tokens for event in chat.stream_details(SUM[0]) if isinstance(event, Generation.reasoning)]
    found = [count for count in counts if count is not None]
    assert len(found) == len(counts) > 20 and found == sorted(found)
    first = chat.context_tokens
    chat.respond(TWO_TURNS[1][0])
    assert chat.context_tokens > first > 0
