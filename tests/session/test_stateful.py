"""Random conversations on every kind of cache: each turn is what a cold start gives, and the ledger never lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from mlx_reasoning import ChatSession, Generation, LoadedModel
from mlx_reasoning.engine.cache import cache_length, make_cache, quantize
from mlx_reasoning.engine.loop import TokenLoop
from mlx_reasoning.engine.options import LoopOptions
from mlx_reasoning.session.rounds import Round

from ..conftest import Tiny

ERROR = 2e-3
"""Where the two best logits are nearer than this, a cold start may choose the other one; see the bench of sessions."""

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "full attention": ("qwen3", {}),
    "sliding window": ("gemma4_text", {}),
    "recurrent": ("qwen3_5", {}),
    "quantised": ("qwen3", {"kv_bits": 8, "kv_group_size": 32}),
}
WORDS = st.sampled_from(["a", "Hi there", "what is <think>?", "x" * 40, "ä☃", "tell me more\n\nplease"])


def lookup(key: str) -> str:
    """Looks something up.

    Args:
        key: What to look up.
    """
    return f"value of {key}"


class Watched(ChatSession):
    """Keeps what each round was: its prompt, and the tokens that came out."""

    rounds: list[Round]

    def watch(self) -> None:
        self.rounds = []
        prepare = self._context.prepare

        def kept(*args: Any) -> Any:
            prepared = prepare(*args)
            self.rounds.append(Round(prepared))
            return prepared

        setattr(self._context, "prepare", kept)  # noqa: B010


def bias(model: LoadedModel) -> dict[int, float]:
    """So that a random model closes thoughts and ends turns now and then."""
    assert model.profile.reasoning is not None
    closer = model.tokenizer.convert_tokens_to_ids(model.profile.reasoning.end_delimiter)
    return dict.fromkeys([*model.profile.stop_token_ids, closer], 1.5)


def machine(model: LoadedModel, options: dict[str, Any], folder: Path) -> type[RuleBasedStateMachine]:
    options = {**options, "logit_bias": bias(model), "max_tokens": 12}

    class Talk(RuleBasedStateMachine):
        @initialize(system=st.booleans(), tools=st.booleans())
        def begin(self, system: bool, tools: bool) -> None:
            self.tools = [lookup] if tools else None
            self.adopt(ChatSession(model, "Be brief." if system else None, tools=self.tools, **options))

        def adopt(self, session: ChatSession) -> None:
            session.__class__ = Watched
            self.session: Watched = session  # type: ignore[assignment]
            self.session.watch()

        def check(self, events: Any) -> None:
            """The tokens of the last turn against a cold start on the same prompt."""
            self.session.rounds = []
            written: list[int] = []
            list(events())
            for done in self.session.rounds:
                written = done.turn.record or []
                same_as_cold(model, options, done.prepared.ids, written)

        @rule(text=WORDS, thinking=st.sampled_from([None, True, False]))
        def send(self, text: str, thinking: bool | None) -> None:
            self.check(lambda: self.session.stream_details(text, thinking=thinking))

        @rule(text=WORDS, after=st.integers(0, 5))
        def cancel(self, text: str, after: int) -> None:
            before = self.session.messages
            events = self.session.stream_details(text)
            for count, event in enumerate(events):
                if isinstance(event, Generation.info):
                    return
                if count == after:
                    break
            events.close()
            assert self.session.messages == before
            assert self.session.interrupted is not None

        @precondition(lambda self: any(m["role"] == "user" for m in self.session.messages))
        @rule()
        def retry(self) -> None:
            self.check(self.session.stream_retried)

        @precondition(lambda self: any(m["role"] == "user" for m in self.session.messages))
        @rule(text=WORDS, data=st.data())
        def edit(self, text: str, data: st.DataObject) -> None:
            users = [at for at, m in enumerate(self.session.messages) if m["role"] == "user"]
            self.check(lambda: self.session.stream_edited(data.draw(st.sampled_from(users)), text))

        @precondition(lambda self: any(m["role"] == "user" for m in self.session.messages))
        @rule()
        def undo(self) -> None:
            length = len(self.session.messages)
            taken = self.session.undo()
            assert taken[0]["role"] == "user" and len(self.session.messages) == length - len(taken)

        @precondition(lambda self: self.session._unfinished is not None)
        @rule()
        def go_on(self) -> None:
            length = len(self.session.messages)
            self.check(self.session.stream_continued)
            assert len(self.session.messages) == length

        @rule()
        def fork(self) -> None:
            old = self.session
            self.adopt(old.fork())
            old.respond("something else altogether")

        @rule(value=st.text("abc", max_size=5))
        def tool_round(self, value: str) -> None:
            call = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"key": "k"}'}}
            said: list[dict[str, Any]] = [
                {"role": "user", "content": "look it up"},
                {"role": "assistant", "content": "", "reasoning_content": "I look.", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": value},
            ]
            self.check(lambda: self.session.stream_details(said))

        @rule()
        def warm(self) -> None:
            self.session.warm()

        @rule(cache=st.booleans())
        def save_and_load(self, cache: bool) -> None:
            path = folder / "talk.session"
            self.session.save(path, cache=cache)
            session = ChatSession.load(path, model, tools=self.tools, **options)
            assert session.messages == self.session.messages
            self.adopt(session)

        @rule()
        def clear(self) -> None:
            self.session.clear()

        @invariant()
        def ledger(self) -> None:
            cache = self.session._context._cache if hasattr(self, "session") else None
            if cache is not None:
                for entry in cache.entries:
                    assert cache_length([entry]) in (len(cache.ids), None)
                assert len(cache.snapshots) <= 4
                assert all(shot.length <= len(cache.ids) for shot in cache.snapshots)

    return Talk


def same_as_cold(model: LoadedModel, options: dict[str, Any], ids: list[int], written: list[int]) -> None:
    """A full prefill, then the same tokens; a near tie may fall the other way, and ends the comparison."""
    cache = make_cache(model.model)
    if "kv_bits" in options:
        quantize(cache.entries, options["kv_bits"], options["kv_group_size"], 0)
    fed = mx.array([ids])
    for at, token in enumerate(written):
        logits = model.model(fed, cache=cache.entries)[0, -1]
        for biased, value in options["logit_bias"].items():
            logits[biased] += value
        best = mx.argmax(logits).item()
        if best != token:
            gap = mx.max(logits).item() - logits[token].item()
            assert gap < ERROR, f"token {at}: {token} in the session, {best} cold, {gap} apart"
            return
        fed = mx.array([[token]])


@pytest.mark.parametrize("kind", KINDS)
def test_random_conversations(tiny: Tiny, tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> None:
    name, options = KINDS[kind]
    slow = request.config.getoption("--slow")
    run_state_machine_as_test(
        machine(tiny(name), options, tmp_path),
        settings=settings(
            max_examples=60 if slow else 8,
            stateful_step_count=30 if slow else 12,
            deadline=None,
            phases=[Phase.explicit, Phase.reuse, Phase.generate] + [Phase.shrink] * slow,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_the_comparison_would_see_a_wrong_cache(tiny: Tiny) -> None:
    model = tiny("qwen3")
    ids = list(range(40, 70))
    options: dict[str, Any] = {"logit_bias": {}}
    wrong = make_cache(model.model)
    wrong.ids = ids[:10]
    model.model(mx.array([ids[5:15]]), cache=wrong.entries)  # not what the ledger says
    written = list(TokenLoop(model.model, ids[10:], wrong, LoopOptions(max_tokens=8)))
    with pytest.raises(AssertionError, match="in the session"):
        same_as_cold(model, options, ids, written)
