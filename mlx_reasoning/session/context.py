"""From the messages of a conversation to a turn on its cache: render, see what the cache can serve, feed the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..engine.cache import PromptCache, beginning, check_kv_bits, common_prefix, make_cache, quantize
from ..engine.feeding import prefill
from ..engine.options import LoopOptions, Progress
from ..errors import PromptError
from ..generation import prepare
from ..messages import Tool
from ..prompt import RenderedPrompt, render
from .rounds import Prepared, Round

if TYPE_CHECKING:
    from ..engine.loading import LoadedModel

_RENDERED = ("thinking", "effort", "template_arguments")
_KIND = ("max_kv_size", "kv_bits", "kv_group_size", "quantized_kv_start", "draft_model")
_WARM_STEP = 256


class Context:
    """The cache of one conversation, and how its prompts are made.

    Args:
        tools: what the model is told of.
    """

    def __init__(self, model: LoadedModel, tools: Sequence[Tool]) -> None:
        self._model = model
        self._tools = list(tools)
        self._cache: PromptCache | None = None
        self._kind: tuple[Any, ...] = ()

    @property
    def nbytes(self) -> int:
        return self._cache.nbytes if self._cache is not None else 0

    @property
    def length(self) -> int:
        return len(self._cache.ids) if self._cache is not None else 0

    def prepare(
        self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any], goes_on: Round | None
    ) -> Prepared:
        """A turn on the messages, or the rest of one that was cut off.

        Raises:
            PromptError, OptionError: as in `stream_generate`.
        """
        if goes_on is None:
            rendered = self._render(messages, options)
            ids, start, notes, written = rendered.ids, rendered.start, rendered.notes, []
        else:
            ids, start, notes = goes_on.prepared.ids, goes_on.prepared.start, goes_on.prepared.notes
            written = goes_on.written
        whole = [*ids, *written]
        given = {name: value for name, value in options.items() if name not in _RENDERED}
        given |= {"start": start, "tools": self._tools}

        def cache() -> PromptCache:
            fitted = self._fitted(whole, options)
            fitted.marks = {} if written or not fitted.needs_snapshots else self._marks(messages, options, ids)
            return fitted

        turn = prepare(self._model, whole, given, controlled=True, replay=written, cache=cache)
        return Prepared(turn, ids, start, notes)

    def warm(
        self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any], cancelled: Callable[[], bool],
        progress: Progress | None = None,
    ) -> int:  # fmt: skip
        """Prefills what every next prompt begins with; gives how many tokens were computed."""
        wanted = self._next_beginning(messages, options)
        if not wanted or options.get("draft_model") is not None:
            return 0
        cache = self._fitted([*wanted, -1], options)
        chosen = {name: options[name] for name in _KIND[1:4] if options.get(name) is not None}
        cache.marks = {}
        before = len(cache.ids)
        chosen |= {"progress": progress, "prefill_step_size": _WARM_STEP}
        prefill(self._model.model, cache, wanted[before:], LoopOptions(**chosen), cancelled)
        return len(cache.ids) - before

    def settle(self) -> None:
        """Another thread may go on with the cache."""
        if self._cache is not None:
            self._cache.settle()

    def copy(self) -> Context:
        twin = Context(self._model, self._tools)
        twin._cache, twin._kind = None if self._cache is None else self._cache.copy(), self._kind
        return twin

    def for_saving(self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> PromptCache | None:
        """The cache, brought back to what the next prompt begins with: what it can be used for later."""
        if self._cache is None or not messages:
            return None
        wanted = self._next_beginning(messages, options)
        if wanted:
            self._fitted([*wanted, -1], options)
        return self._cache if self._cache.ids else None

    def take(self, cache: PromptCache | None, options: Mapping[str, Any]) -> None:
        """Goes on with a cache from a file, if it is of the kind that the options ask for."""
        if cache is not None and all(options.get(name) is None for name in _KIND):
            self._cache, self._kind = cache, _kind(options)

    def _render(
        self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any], *, generation_prompt: bool = True
    ) -> RenderedPrompt:
        return render(
            self._model.tokenizer,
            [{key: value for key, value in m.items() if key != "rejected_tool_calls"} for m in messages],
            profile=self._model.profile,
            tools=self._tools or None,
            add_generation_prompt=generation_prompt,
            continue_final_message=None if generation_prompt else False,
            **{name: options.get(name) for name in _RENDERED},
        )

    def _fitted(self, wanted: Sequence[int], options: Mapping[str, Any]) -> PromptCache:
        """The conversation's cache, holding nothing but a beginning of `wanted`."""
        kind = _kind(options)
        if self._cache is None or kind != self._kind:
            known = None if any(kind) else self._model.prompt_cache
            self._cache, self._kind = beginning(known, wanted, lambda: self._fresh(options)), kind
        self._cache.fit(wanted, lambda: self._fresh(options))
        return self._cache

    def _fresh(self, options: Mapping[str, Any]) -> PromptCache:
        draft, bits = options.get("draft_model"), options.get("kv_bits")
        fresh = make_cache(self._model.model, max_kv_size=options.get("max_kv_size"), draft_model=draft and draft.model)
        if bits is not None and not options.get("quantized_kv_start"):
            # from the first token on, so that a prompt gives the same however it is cut
            group_size = options.get("kv_group_size") or LoopOptions().kv_group_size
            check_kv_bits(fresh.entries, bits, group_size, self._model.head_dim)
            quantize(fresh.entries, bits, group_size, 0)
        return fresh

    def _marks(
        self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any], ids: Sequence[int]
    ) -> dict[int, bool]:
        """Where a cache that cannot be trimmed should be copied: where this prompt and later ones part."""
        marks = {self._shared(ids, messages, options, last=True): True}
        if messages[-1]["role"] == "tool":  # within a tool loop thoughts may stay that are dropped after it
            marks.setdefault(self._shared(ids, messages, options, last=False), False)
        return marks

    def _shared(
        self, ids: Sequence[int], messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any], *, last: bool
    ) -> int:
        later = [{"role": "assistant", "content": "x"}, {"role": "user", "content": "x"}] if last else []
        try:
            return common_prefix(ids, self._render([*messages, *later], options, generation_prompt=False).ids)
        except PromptError:
            return 0

    def _next_beginning(self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> list[int]:
        """The ids that the next prompt begins with, whatever the user says; none where that cannot be said."""
        last = messages[-1] if messages else {"role": "system"}
        if last["role"] not in ("assistant", "system", "developer") or last.get("tool_calls"):
            return []
        try:
            one, other = (
                self._render([*messages, {"role": "user", "content": text}], options, generation_prompt=False).ids
                for text in ("a", "Z")
            )
        except PromptError:
            return []
        return list(one[: common_prefix(one, other)])


def _kind(options: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(options.get(name) for name in _KIND)
