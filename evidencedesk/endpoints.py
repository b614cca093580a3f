"""What OpenAI-compatible endpoints have in common, whether they embed or answer: the connection and its failures."""

from __future__ import annotations

import base64
import os
import re
import traceback
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from evidencedesk.records import require_count, require_number

_SHORTEST_SECRET = 16
"""Characters: servers that need no key are given a word such as `ollama`, which may stand in any text."""


class Unreachable(Exception):
    """There is no package, key, connection, permission or model; the message says which and what to do."""


class Refused(Exception):
    """The server answered, but not with what was asked for: `said` is what it said, without the key.

    `status` is None when its answer cannot be read. `blames` is everything that may name the field it objects to.
    """

    def __init__(self, said: str, status: int | None = None, blames: str = "") -> None:
        super().__init__(said)
        self.said, self.status, self.blames = said, status, blames


class Endpoint:
    """A connection that is made when first used, once in each process. Its failures are Unreachable or Refused.

    `base_url` or OPENAI_BASE_URL says where (default: OpenAI itself); `api_key` or OPENAI_API_KEY is the key, which
    another endpoint may not need. Connections that fail, and the statuses 408, 409, 429 and 500 upwards, are tried
    again `max_retries` times after a wait of half a second and more, or what the server asks for, up to two minutes;
    an attempt ends when nothing came for `timeout_seconds`. `when_slow` is the advice for a server that takes longer.
    Messages name the URL, without its user, password and query, and never the key. ValueError for wrong settings.
    """

    def __init__(
        self, base_url: str | None, api_key: str | None, timeout_seconds: float, max_retries: int, *, when_slow: str
    ) -> None:
        if not require_number("timeout_seconds", timeout_seconds) > 0:
            raise ValueError(f"timeout_seconds must be above 0, not {timeout_seconds!r}")
        self._base_url, self._api_key, self._timeout_seconds = base_url, api_key, timeout_seconds
        self._max_retries = require_count("max_retries", max_retries, minimum=0)
        self._when_slow = when_slow
        self._connected: tuple[int, str, Any] | None = None
        self._secrets: list[str] = []

    def ask(self, call: Callable[[Any], Any]) -> Any:
        """Give what `call` gets from an `openai.OpenAI` client."""
        url, client = self._client()
        import openai

        def said(error: BaseException) -> str:
            # A server may repeat what it was sent.
            return _without(self._secrets, str(error))[:300]

        def shown(error: BaseException) -> BaseException | None:
            # A traceback prints the cause too, and there the key would stand.
            held = "".join(traceback.format_exception(error))
            return error if _without(self._secrets, held) == held else None

        try:
            answer = call(client)
        except openai.APITimeoutError as error:
            next_step = f"see whether the server works; a slow one needs {self._when_slow}"
            raise Unreachable(f"no answer from {url} within {self._timeout_seconds:g} seconds; {next_step}") from shown(
                error
            )
        except openai.APIConnectionError as error:
            why = said(error.__cause__ or error)
            raise Unreachable(f"no answer from {url} ({why}); start the server, or correct OPENAI_BASE_URL") from shown(
                error
            )
        except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
            next_step = "check the model, OPENAI_API_KEY, and the base URL, which often ends in /v1"
            raise Unreachable(f"{url} refused it ({said(error)}); {next_step}") from shown(error)
        except openai.APIStatusError as error:
            raise Refused(said(error), error.status_code, _blames(error)) from shown(error)
        except (openai.OpenAIError, ValueError) as error:
            raise Refused(said(error)) from shown(error)
        problem = getattr(answer, "error", None)
        if problem:  # some gateways say so with the status of success
            message = problem.get("message", problem) if isinstance(problem, dict) else problem
            raise Refused(said(ValueError(message)))
        return answer

    def without_secrets(self, text: str) -> str:
        """What a server wrote, without the key and password that it was sent: it may be recorded."""
        return _without([secret for secret in self._secrets if len(secret) >= _SHORTEST_SECRET], text)

    @property
    def url(self) -> str:
        """Where it is, without what must not be shown."""
        return self._client()[0]

    def _client(self) -> tuple[str, Any]:
        # A child process must not talk on its parent's connections.
        if self._connected is None or self._connected[0] != os.getpid():
            try:
                import openai
            except ImportError as error:
                problem = 'the package openai is not installed; `pip install "evidencedesk[openai]"`'
                raise Unreachable(problem) from error
            elsewhere = self._base_url or os.environ.get("OPENAI_BASE_URL")
            key = self._api_key or os.environ.get("OPENAI_API_KEY") or ("not-needed" if elsewhere else None)
            if key is None:
                raise Unreachable("there is no key; set OPENAI_API_KEY, or OPENAI_BASE_URL where none is needed")
            key = key.strip()
            if not key.isascii() or not key.isprintable() or " " in key:
                # It could not be sent, and the message of whoever tries would show it.
                raise Unreachable("the key holds a character that no key has; set OPENAI_API_KEY anew")
            url = elsewhere or "https://api.openai.com/v1"
            shown = re.sub("//[^/]*@", "//", url).partition("?")[0]
            try:
                self._secrets = _secrets(key, url)
                client = openai.OpenAI(
                    base_url=url, api_key=key, timeout=self._timeout_seconds, max_retries=self._max_retries
                )
            except Exception as error:  # its HTTP library's own, for a URL that is none
                problem = f"{shown} is no usable base URL ({type(error).__name__}); correct OPENAI_BASE_URL"
                raise Unreachable(problem) from error
            self._connected = (os.getpid(), shown, client)
        return self._connected[1:]


def _secrets(key: str, url: str) -> list[str]:
    """What must not be shown of a connection: its key, and what the URL holds besides host and path."""
    parts = urlsplit(url)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    basic = base64.b64encode(f"{user}:{password}".encode()).decode() if password else ""
    named = [value for _, value in parse_qsl(parts.query) if len(value) >= _SHORTEST_SECRET]
    return [secret for secret in (key, password, basic, *named) if secret]


def _without(secrets: Iterable[str], text: str) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def _blames(error: Any) -> str:
    """What names the field that a server objects to.

    A list of `detail` (FastAPI's) repeats the whole request as its `input`, which names every field.
    """
    body = error.body if isinstance(error.body, dict) else {}
    details = body.get("detail")
    if isinstance(details, list):
        return " ".join(f"{d.get('loc')} {d.get('msg')}" for d in details if isinstance(d, dict))
    return f"{error.param or ''} {error.code or ''} {error} {'' if error.param else error.body}"
