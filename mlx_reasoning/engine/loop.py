"""The token loop: prompt ids in, token ids out, one step ahead of the host. It knows nothing of text.

The operations are those of mlx-lm's `generate_step`, in its order, so that the same seed gives the same ids. What is
added: the ids in the cache are known after every ending, a consumer can put tokens of its own in place of sampled ones,
and a loop can be cancelled between tokens and between chunks of the prompt.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Literal, NoReturn

import mlx.core as mx
from mlx_lm.generate import generation_stream, speculative_generate_step

from ..errors import MLXReasoningError, ModelError, OptionError
from .cache import PromptCache, cache_length, make_cache, quantize
from .feeding import feed, wired_limit
from .options import LoopOptions
from .sampling import LogitsProcessor, Sampler

_NO_LIMIT = 2**31 - 1
_async_eval: Callable[..., None] = mx.async_eval


class TokenLoop:
    """Hands out tokens, an iterator of ints.

    A stop token ends the iteration and is not handed out. Whatever ends it, `cache.ids` are the tokens in the cache: a
    failure of the model, after which the layers of a cache may disagree, empties both.

    Limits: one thread iterates a loop; mlx's streams belong to threads.

    Args:
        prompt: the ids to feed, those already in the cache left out; at least one.
    """

    def __init__(
        self, model: Any, prompt: Sequence[int], cache: PromptCache, options: LoopOptions, *, draft_model: Any = None
    ) -> None:
        self._model = model
        self._draft_model = draft_model
        self._prompt = prompt
        self._options = options
        self._forced: deque[tuple[int, bool]] = deque()  # and whether it may end the turn
        self._replace: Callable[[int], Sequence[int]] | None = None
        self._outside = False  # in a callable of the caller's, whose exceptions are no failure of the model
        self._sampler: Sampler = options.sampling.sampler(options.vocab_size)
        self._processors: list[LogitsProcessor] = options.sampling.logits_processors()
        self.cache = cache
        self.finish_reason: Literal["stop", "length", "cancelled"] | None = None
        self.prefilled = 0
        self.generated = 0
        self.prompt_seconds = 0.0
        self.generation_seconds = 0.0
        self._began = 0.0
        self._first_token: float | None = None
        self._tokens = self._run()

    def __iter__(self) -> Iterator[int]:
        return self._tokens

    @property
    def peak_memory(self) -> int:
        """Bytes, of the whole process so far."""
        return mx.get_peak_memory()

    def force(self, ids: Iterable[int], *, may_end: bool = True) -> None:
        """Puts these tokens in place of the next ones.

        It costs nothing: when a token is handed out, the step ahead has fed that token and no more, so what it sampled
        is dropped unread. Forced tokens are handed out, counted and recorded like others.

        Args:
            may_end: a stop token among them ends the turn, as a sampled one does.

        Raises:
            OptionError: a draft model runs, which is steps ahead.
        """
        if self._draft_model is not None:
            raise OptionError("tokens cannot be forced while a draft model runs: leave draft_model out")
        self._forced.extend((token, may_end) for token in ids)

    def replace_with(self, choose: Callable[[int], Sequence[int]]) -> None:
        """Asks `choose` about every sampled token before it is fed: what it gives, if anything, takes its place.

        The loop then runs no step ahead, which costs speed: for what must be decided before a token counts.
        """
        self._replace = choose

    def close(self) -> None:
        """Ends the loop now; safe at any moment, and twice."""
        self._tokens.close()

    def _run(self) -> Generator[int, None, None]:
        self._began = perf_counter()
        try:
            with wired_limit():
                if self._options.sampling.seed is not None:
                    mx.random.seed(self._options.sampling.seed)
                last = self._prefill()
                if last is None:
                    self.finish_reason = "cancelled"
                elif self._draft_model is None:
                    yield from self._decode(last)
                else:
                    yield from self._speculate(last)
        except GeneratorExit:
            raise
        except BaseException as error:
            self._fail(error)
        finally:
            ended = perf_counter()
            first = self._first_token or ended
            self.prompt_seconds = first - self._began
            self.generation_seconds = ended - first

    def _prefill(self) -> mx.array | None:
        """Feeds the prompt but for its last token, which is returned; None where it was cancelled."""
        options, cache = self._options, self.cache
        prompt = mx.array(list(self._prompt))
        self._report(0, len(self._prompt))
        if self._cancelled():
            return None
        if self._draft_model is not None and options.kv_bits is not None:
            quantize(cache.entries, options.kv_bits, options.kv_group_size, 0)  # mlx-lm quantises a copy
        pauses = {mark - len(cache.ids) for mark in cache.marks}
        for done in feed(self._model, cache.entries, prompt, options, pauses=pauses):
            cache.ids.extend(self._prompt[self.prefilled : done])
            self.prefilled = done
            if done in pauses:
                cache.take_snapshot()
            self._report(done, len(self._prompt))
            if self._cancelled():
                return None
        if self._draft_model is not None and cache.draft is not None:
            behind = mx.array([*cache.ids, self._prompt[-1]][cache_length(cache.draft) or 0 :])
            for _ in feed(self._draft_model, cache.draft, behind, replace(options, kv_bits=None)):
                if self._cancelled():
                    return None
        return prompt[self.prefilled :]

    def _decode(self, last: mx.array) -> Generator[int, None, None]:
        ids, forced, cancelled = self.cache.ids, self._forced, self._options.cancel and self._cancelled
        stop_ids, limit = self._options.stop_token_ids, self._options.max_tokens
        step = self._stepper()
        y = step(last)
        _async_eval(y)
        ids.append(self._prompt[-1])
        self.prefilled += 1
        if len(ids) in self.cache.marks:
            self.cache.take_snapshot()
        n = 0
        while True:
            if not forced and self._replace is not None:
                self.force(self._replace(int(y.item())), may_end=False)  # type: ignore[arg-type]
            token, may_end = forced.popleft() if forced else (None, True)
            if token is not None:
                y = mx.array([token], mx.uint32)
            n += 1
            if n != limit:  # one step ahead; behind the last token there is nothing to see
                following = step(y)
                _async_eval(following)
            if token is None:
                token = int(y.item())  # type: ignore[arg-type]
            if n != limit:
                ids.append(token)
            if n == 1:
                self._saw_first_token()
            self.generated = n
            if token in stop_ids and may_end:
                self.finish_reason = "stop"
                return
            yield token
            if n == limit:
                self.finish_reason = "length"
                return
            if cancelled and cancelled():
                self.finish_reason = "cancelled"
                return
            if n & 255 == 1:
                mx.clear_cache()
            y = following

    def _stepper(self) -> Callable[[mx.array], mx.array]:
        """One forward pass: tokens (T,) are fed, and the next one (1,) is sampled."""
        model, entries, options = self._model, self.cache.entries, self._options
        sampler, processors = self._sampler, self._processors
        logsumexp, stream, bits = mx.logsumexp, generation_stream, options.kv_bits
        seen = mx.array(self.cache.ids) if processors and self.cache.ids else None

        def step(tokens: mx.array) -> mx.array:
            nonlocal seen
            with mx.stream(stream):
                logits = model(tokens[None], cache=entries)[:, -1, :]  # (1, V)
                if processors:
                    seen = tokens if seen is None else mx.concatenate([seen, tokens])
                    for processor in processors:
                        logits = processor(seen, logits)
                if bits is not None:
                    quantize(entries, bits, options.kv_group_size, options.quantized_kv_start)
                return sampler(logits - logsumexp(logits, keepdims=True))

        return step

    def _speculate(self, last: mx.array) -> Generator[int, None, None]:
        """mlx-lm's speculative decoding; `cache.ids` are brought up to date when it ends."""
        options, cache = self._options, self.cache
        known = [*cache.ids, self._prompt[-1]]
        self.prefilled += 1
        steps: Generator[tuple[Any, Any, bool], None, None] = speculative_generate_step(
            last,
            self._model,
            self._draft_model,
            num_draft_tokens=options.num_draft_tokens,
            max_tokens=options.max_tokens or _NO_LIMIT,
            sampler=self._sampler,
            logits_processors=self._processors,
            prompt_cache=[*cache.entries, *(cache.draft or [])],
        )
        try:
            for n, (token, _, _) in enumerate(steps, 1):
                known.append(token)
                if n == 1:
                    self._saw_first_token()
                self.generated = n
                if token in options.stop_token_ids:
                    self.finish_reason = "stop"
                    return
                yield token
                if n == options.max_tokens:
                    self.finish_reason = "length"
                    return
                if self._cancelled():
                    self.finish_reason = "cancelled"
                    return
        finally:
            steps.close()  # takes back what was drafted in vain
            cache.ids[:] = known[: cache_length(cache.entries)]

    def _saw_first_token(self) -> None:
        self._first_token = perf_counter()
        self._report(len(self._prompt), len(self._prompt))

    def _report(self, done: int, total: int) -> None:
        if self._options.progress is not None:
            self._outside = True
            self._options.progress(done, total)
            self._outside = False

    def _cancelled(self) -> bool:
        cancel = self._options.cancel
        if cancel is None:
            return False
        if isinstance(cancel, threading.Event):
            return cancel.is_set()
        self._outside = True
        answer = bool(cancel())
        self._outside = False
        return answer

    def _fail(self, error: BaseException) -> NoReturn:
        if self._outside:
            raise error
        self.cache.replace(
            make_cache(self._model, max_kv_size=self._options.max_kv_size, draft_model=self._draft_model)
        )
        if isinstance(error, (MLXReasoningError, KeyboardInterrupt, SystemExit)):
            raise error
        advice = "try again, and if it stays, load the model anew"
        if any(word in str(error).lower() for word in ("memory", "alloc")):
            advice = "give it a shorter prompt, a smaller max_kv_size or prefill_step_size, or kv_bits=8"
        elif self._options.kv_bits is not None and "quantiz" in str(error).lower():
            advice = "this model's cache cannot be quantised: leave kv_bits out"
        raise ModelError(f"the model failed while running ({error or type(error).__name__}): {advice}") from error
