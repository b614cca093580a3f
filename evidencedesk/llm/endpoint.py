"""A language model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from evidencedesk.endpoints import Endpoint, Refused, Unreachable
from evidencedesk.errors import ModelError, ModelUnavailable
from evidencedesk.records import ModelRequest, require_count

Structured = Literal["json_schema", "json_object", "none"]

_ABOUT_FORM = ("response_format", "json_schema", "json_object", "schema", "grammar", "structured")
_ABOUT_TEXT = ("content_filter", "content_policy", "context_length", "context length", "context size", "safety")


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What a server can be sent; it begins with the most and shrinks with what the server refuses."""

    structured: Structured
    may_step_down: bool
    length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True

    def without(self, refusal: Refused) -> _Dialect | None:
        """The next one to try after a refusal; None when it is not the fields that it is about."""
        blames = refusal.blames.lower()
        about_form = any(word in blames for word in _ABOUT_FORM)
        about_fields = refusal.status in (400, 422) or (about_form and refusal.status in (500, 501))
        if not about_fields or any(cause in blames for cause in _ABOUT_TEXT):
            return None
        if "temperature" in blames and self.temperature:
            return replace(self, temperature=False)
        if "max_tokens" in blames and self.length_field == "max_tokens" and not about_form:
            return replace(self, length_field="max_completion_tokens")
        # A server that does not say what it cannot read is most often at odds with the newest field.
        if self.may_step_down and self.structured == "json_schema":
            return replace(self, structured="json_object")
        if self.may_step_down and self.structured == "json_object":
            return replace(self, structured="none")
        return None


class OpenAIClient:
    """An `LLMClient` for OpenAI and every server that speaks its chat completions: Ollama, vLLM, llama.cpp's.

    `base_url` or OPENAI_BASE_URL says where (default: OpenAI itself); `api_key` or OPENAI_API_KEY is the key, which
    another endpoint may not need. `max_output_tokens` bounds the reply (None: the server's own bound); a reply that
    meets it is an error, never a shorter answer. `temperature` None leaves it to the model.

    `structured` says how the reply is held to the request's schema: by `json_schema` (strict), by `json_object` (any
    JSON), or by the instruction alone (`none`). `auto` begins with the first; a server that refuses it is asked again
    with the next. A model that knows no temperature, or has another name for the limit of tokens, is asked again too.
    What a server took is remembered by the client, so that later requests are sent once.

    Connections that fail, and the statuses 408, 409, 429 and 500 upwards, are tried again `max_retries` times after a
    wait of half a second and more, or what the server asks for, up to two minutes; an attempt ends when nothing came
    for `timeout_seconds`. ModelUnavailable without the package, a key, a connection or the model; ModelError for any
    other refusal, and for a reply that is refused by the model, filtered, cut or empty. Messages name the URL and never
    the key. Safe to share between threads. ValueError for wrong settings.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_seconds: float = 60.0,
        max_retries: int = 2,
        max_output_tokens: int | None = None,
        temperature: float | None = 0,
        structured: Literal["auto", "json_schema", "json_object", "none"] = "auto",
    ) -> None:
        if not model.strip():
            raise ValueError("model must not be empty")
        if structured != "auto" and structured not in get_args(Structured):
            choices = '"auto", "json_schema", "json_object" or "none"'
            raise ValueError(f"structured must be {choices}, not {structured!r}")
        if temperature is not None and not 0 <= temperature <= 2:
            raise ValueError(f"temperature must lie between 0 and 2, or be None, not {temperature!r}")
        if max_output_tokens is not None:
            require_count("max_output_tokens", max_output_tokens)
        self.name = model
        self._max_output_tokens, self._temperature = max_output_tokens, temperature
        self._endpoint = Endpoint(
            base_url, api_key, timeout_seconds, max_retries, when_slow="more timeout_seconds or a smaller model"
        )
        first: Structured = "json_schema" if structured == "auto" else structured
        self._dialect = _Dialect(first, may_step_down=structured == "auto")

    def complete(self, request: ModelRequest) -> str:
        dialect = self._dialect
        while True:
            try:
                completion = self._send(self._fields(request, dialect))
                break
            except Unreachable as error:
                raise ModelUnavailable(model=self.name, problem=str(error)) from error
            except Refused as refusal:
                smaller = dialect.without(refusal)
                if smaller is None:
                    raise ModelError(model=self.name, problem=self._problem(refusal)) from refusal
                dialect = smaller
        self._dialect = dialect
        return self._text(completion)

    def _send(self, fields: dict[str, Any]) -> Any:
        return self._endpoint.ask(lambda client: client.chat.completions.create(**fields))

    def _fields(self, request: ModelRequest, dialect: _Dialect) -> dict[str, Any]:
        messages = [{"role": "system", "content": request.system}, {"role": "user", "content": request.prompt}]
        fields: dict[str, Any] = {"model": self.name, "messages": messages}
        if self._temperature is not None and dialect.temperature:
            fields["temperature"] = self._temperature
        if self._max_output_tokens is not None:
            fields[dialect.length_field] = self._max_output_tokens
        if dialect.structured == "json_schema":
            schema = {"name": "reply", "schema": dict(request.schema), "strict": True}
            fields["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif dialect.structured == "json_object":
            fields["response_format"] = {"type": "json_object"}
        return fields

    def _text(self, completion: Any) -> str:
        """The reply, when it is whole."""

        def failed(problem: str) -> ModelError:
            return ModelError(model=self.name, problem=problem)

        choices = getattr(completion, "choices", None)
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = getattr(choice, "message", None)
        if message is None:
            raise failed(f"{self._endpoint.url} is no OpenAI-compatible endpoint; its base URL often ends in /v1")
        ended = getattr(choice, "finish_reason", None)
        if refusal := getattr(message, "refusal", None):
            raise failed(f"it refused to answer ({self._endpoint.without_secrets(str(refusal))[:300]})")
        if ended == "content_filter":
            raise failed("its reply was withheld by the server's content filter")
        if ended == "length":
            raise failed("its reply was cut at the limit of tokens; give it more max_output_tokens or context")
        text = getattr(message, "content", None)
        if not isinstance(text, str) or not text.strip():
            raise failed(f"its reply is empty (finish_reason {ended!r})")
        return self._endpoint.without_secrets(text)

    def _problem(self, refusal: Refused) -> str:
        url, said = self._endpoint.url, refusal.said
        if refusal.status is None:
            return f"{url} gave no answer that can be read ({said}); its base URL often ends in /v1"
        if refusal.status == 429:
            return f"{url} answers no more requests for now ({said}); try again later, or look at the account's limits"
        if refusal.status >= 500:
            return f"{url} did not answer ({said}); try again later, or look at the server's log"
        return f"{url} refused the request ({said}); check the model, its context length, and what it can be sent"
