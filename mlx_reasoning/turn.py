"""One turn that runs: tokens from the loop through the decoder, and events out. What was asked is checked before."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from .decode.decoder import TokenStreamDecoder
from .engine.loop import TokenLoop
from .engine.thought import ThoughtControl
from .events import Generation, GenerationEvent, GenerationInfo, Usage
from .messages import FinishReason


@dataclass(slots=True)
class Turn:
    """A checked turn, ready to run. An end by a stop string is the model's own end: what it called still counts.

    Args:
        control: closes thoughts; None where nothing can ask for it.
        prompt_tokens: of the whole prompt; cached_tokens of them were in the cache.
        notes: what the caller should know.
        replayed: the events of what the model wrote of this turn before; they are not given again.
        replayed_reasoning: tokens of it that belong to thoughts.
        record: every generated token but the one that ends the turn, those of the replay first.
    """

    loop: TokenLoop
    decoder: TokenStreamDecoder
    control: ThoughtControl | None
    prompt_tokens: int
    cached_tokens: int
    has_stop_strings: bool
    notes: tuple[str, ...] = ()
    replayed: tuple[GenerationEvent, ...] = ()
    replayed_reasoning: int = 0
    record: list[int] = field(default_factory=list)

    def events(self) -> Generator[GenerationEvent, None, None]:
        """The events, `Generation.info` last."""
        decoder = self.decoder
        called = False
        try:
            for event in self._tokens():
                if event.__class__ is Generation.tool_call:
                    called = True
                yield event
        finally:
            self.loop.close()
        reason: FinishReason = "stop" if decoder.stop_sequence is not None else self.loop.finish_reason or "stop"
        for event in decoder.finish(reason):
            if event.__class__ is Generation.tool_call:
                called = True
            yield event
        if decoder.stop_sequence is not None:  # it may have been completed by what was held back
            reason = "stop"
        yield Generation.info(self._info("tool_calls" if called and reason == "stop" else reason))

    def _tokens(self) -> Generator[GenerationEvent, None, None]:
        decoder, control = self.decoder, self.control
        push, record = decoder.push, self.record.append
        for token in self.loop:
            record(token)
            events = push(token)
            if control is not None:
                control.after(token)
            yield from events
            if self.has_stop_strings and decoder.stop_sequence is not None:
                return

    def _info(self, reason: FinishReason) -> GenerationInfo:
        loop, decoder, control = self.loop, self.decoder, self.control
        after_first = loop.generated - 1
        thought, seconds = decoder.reasoning_tokens, loop.generation_seconds
        if thought is not None:
            forced = control.forced_inside if control is not None else 0
            thought = max(0, thought - self.replayed_reasoning - forced)
        return GenerationInfo(
            finish_reason=reason,
            stop_sequence=decoder.stop_sequence,
            ended_inside_reasoning=decoder.ended_inside_reasoning,
            usage=Usage(
                prompt_tokens=self.prompt_tokens,
                completion_tokens=loop.generated,
                reasoning_tokens=thought,
                cached_tokens=self.cached_tokens,
                prefilled_tokens=loop.prefilled,
            ),
            prompt_tps=loop.prefilled / loop.prompt_seconds if loop.prefilled and loop.prompt_seconds else None,
            generation_tps=after_first / seconds if after_first > 0 and seconds else None,
            peak_memory=loop.peak_memory,
            notes=self.notes + (control.notes if control is not None else ()),
        )
