"""Runs thinking models on MLX and gives the thought, the answer and the tool calls as separate, ordered events.

Everything is loaded when it is first asked for, so that the splitter costs no import of mlx or transformers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .decode.decoder import StandardTokenStreamDecoder, make_token_stream_decoder
    from .decode.prompt_state import prompt_ends_inside_reasoning, start_state
    from .decode.reasoning import ReasoningEventEmitter
    from .decode.segment import Segment
    from .decode.split import Split, split_reasoning
    from .decode.stop import StopStringFilter
    from .decode.tool_calls import ToolCallProcessor
    from .engine.loading import LoadedModel, load
    from .errors import (
        ContextLengthError,
        HubError,
        LoadError,
        MissingChatTemplateError,
        MissingDependencyError,
        MLXReasoningError,
        ModelError,
        ModelNotFoundError,
        NotAModelError,
        OptionError,
        PromptError,
        ReasoningControlError,
        SessionFileError,
        UnknownFamilyError,
        UnsupportedArchitectureError,
    )
    from .events import Completion, Generation, GenerationEvent, GenerationInfo, Usage
    from .generation import generate, stream_generate
    from .messages import Message, RejectedToolCall, Tool, ToolCall
    from .protocols.config import (
        BudgetTransition,
        ModelProfile,
        PromptStrategy,
        ReasoningChannel,
        ReasoningConfig,
        StartState,
        ToolCallFormat,
    )
    from .protocols.families import family
    from .session.chat import ChatSession

_HOMES = {
    "decode.decoder": ("StandardTokenStreamDecoder", "make_token_stream_decoder"),
    "decode.prompt_state": ("prompt_ends_inside_reasoning", "start_state"),
    "decode.reasoning": ("ReasoningEventEmitter",),
    "decode.segment": ("Segment",),
    "decode.split": ("Split", "split_reasoning"),
    "decode.stop": ("StopStringFilter",),
    "decode.tool_calls": ("ToolCallProcessor",),
    "engine.loading": ("LoadedModel", "load"),
    "errors": (
        "ContextLengthError",
        "HubError",
        "LoadError",
        "MLXReasoningError",
        "MissingChatTemplateError",
        "MissingDependencyError",
        "ModelError",
        "ModelNotFoundError",
        "NotAModelError",
        "OptionError",
        "PromptError",
        "ReasoningControlError",
        "SessionFileError",
        "UnknownFamilyError",
        "UnsupportedArchitectureError",
    ),
    "events": ("Completion", "Generation", "GenerationEvent", "GenerationInfo", "Usage"),
    "generation": ("generate", "stream_generate"),
    "messages": ("Message", "RejectedToolCall", "Tool", "ToolCall"),
    "protocols.config": (
        "BudgetTransition",
        "ModelProfile",
        "PromptStrategy",
        "ReasoningChannel",
        "ReasoningConfig",
        "StartState",
        "ToolCallFormat",
    ),
    "protocols.families": ("family",),
    "session.chat": ("ChatSession",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BudgetTransition",
    "ChatSession",
    "Completion",
    "ContextLengthError",
    "Generation",
    "GenerationEvent",
    "GenerationInfo",
    "HubError",
    "LoadError",
    "LoadedModel",
    "MLXReasoningError",
    "Message",
    "MissingChatTemplateError",
    "MissingDependencyError",
    "ModelError",
    "ModelNotFoundError",
    "ModelProfile",
    "NotAModelError",
    "OptionError",
    "PromptError",
    "PromptStrategy",
    "ReasoningChannel",
    "ReasoningConfig",
    "ReasoningControlError",
    "ReasoningEventEmitter",
    "RejectedToolCall",
    "Segment",
    "SessionFileError",
    "Split",
    "StandardTokenStreamDecoder",
    "StartState",
    "StopStringFilter",
    "Tool",
    "ToolCall",
    "ToolCallFormat",
    "ToolCallProcessor",
    "UnknownFamilyError",
    "UnsupportedArchitectureError",
    "Usage",
    "family",
    "generate",
    "load",
    "make_token_stream_decoder",
    "prompt_ends_inside_reasoning",
    "split_reasoning",
    "start_state",
    "stream_generate",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value  # a function's module may carry its name: the function wins
    return value


def __dir__() -> list[str]:
    return __all__
