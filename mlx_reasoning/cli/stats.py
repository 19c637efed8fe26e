"""What a turn cost, in words."""

from __future__ import annotations

from ..events import GenerationInfo


def lines(info: GenerationInfo) -> list[str]:
    """Counts, speeds and memory; what is not known is left out."""
    usage = info.usage
    found = []
    if usage.prompt_tokens is not None:
        speed = f", {info.prompt_tps:,.0f} tokens/s" if info.prompt_tps else ""
        found.append(f"prompt: {usage.prompt_tokens:,} tokens, {usage.cached_tokens or 0:,} of them reused{speed}")
    if usage.completion_tokens is not None:
        speed = f", {info.generation_tps:,.0f} tokens/s" if info.generation_tps else ""
        thought = f", {usage.reasoning_tokens:,} of them thought" if usage.reasoning_tokens is not None else ""
        found.append(f"generated: {usage.completion_tokens:,} tokens{thought}{speed}")
    if info.peak_memory:
        found.append(f"memory: {info.peak_memory / 1e6:,.0f} MB at most")
    found.append(f"ended by: {info.finish_reason}")
    return found
