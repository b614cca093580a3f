"""What a desk needs of a language model."""

from __future__ import annotations

from typing import Protocol

from evidencedesk.records import ModelRequest


class LLMClient(Protocol):
    """What a desk needs of a language model.

    `name` is kept with recorded answers. `complete` gives the model's reply as it came, which should be JSON that
    fulfils `request.schema`; it is called from any thread and raises ModelError when there is no whole reply. Any
    other exception of a host's client is taken for a failed model too.
    """

    @property
    def name(self) -> str: ...
    def complete(self, request: ModelRequest) -> str: ...
