"""The exceptions: what a caller did wrong, or what a machine could not do. It knows no room of ours.

    MLXReasoningError
    ├── LoadError
    │   ├── ModelNotFoundError
    │   ├── NotAModelError
    │   ├── UnsupportedArchitectureError
    │   ├── MissingChatTemplateError
    │   └── HubError
    ├── PromptError
    │   └── ContextLengthError
    ├── OptionError
    │   ├── UnknownFamilyError
    │   └── ReasoningControlError
    ├── SessionFileError
    ├── ModelError
    └── MissingDependencyError

What a *model* does wrong is never an exception: see `Generation.rejected_tool_call`.
"""

from __future__ import annotations


class MLXReasoningError(Exception):
    """Base of everything this package raises on purpose; the message says what to do next."""

    status_hint = 500


class LoadError(MLXReasoningError):
    """A model could not be loaded."""


class ModelNotFoundError(LoadError):
    """There is no such folder, or no such repository or revision on the Hub."""

    status_hint = 404


class NotAModelError(LoadError):
    """The folder is there but does not hold a model (no config.json, no weights, or unreadable ones)."""


class UnsupportedArchitectureError(LoadError):
    """mlx-lm has no implementation of the checkpoint's model type."""


class MissingChatTemplateError(LoadError):
    """The checkpoint has no chat template, so messages cannot be rendered."""


class HubError(LoadError):
    """The Hub did not answer, refused, or broke off, and no copy is cached."""

    status_hint = 502


class PromptError(MLXReasoningError):
    """The prompt is empty, or the chat template refused the messages."""

    status_hint = 400


class ContextLengthError(PromptError):
    """The prompt leaves no room in the model's context."""


class OptionError(MLXReasoningError, ValueError):
    """An option is unknown, or its value is out of range."""

    status_hint = 400


class UnknownFamilyError(OptionError):
    """No row of the family table has this name; the message lists the names."""


class ReasoningControlError(OptionError):
    """The model's family cannot do what was asked of its thinking."""


class ModelError(MLXReasoningError):
    """The model raised while it was running (out of memory, a kernel's failure)."""


class SessionFileError(MLXReasoningError):
    """A saved conversation cannot be read or written, or it belongs to another model."""

    status_hint = 400


class MissingDependencyError(MLXReasoningError, ImportError):
    """An optional package is not installed; the message names it."""

    status_hint = 501
