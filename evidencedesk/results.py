"""What a language model replied -> a ModelAnswer, or BadOutput with the whole reply. Never a part of an answer.

A reply is exactly one JSON object of the shape of `reply_schema()`. Around it, and only around it, there may be what
models add: a byte-order mark, a code fence, a sentence, a block of reasoning (`<think>...</think>`) in front. The
object itself is read strictly: nothing is mended, guessed or left out.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, NoReturn

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from evidencedesk import strict_json
from evidencedesk.errors import BadOutput
from evidencedesk.records import ModelAnswer, ModelClaim

_STRICT = ConfigDict(strict=True, extra="forbid", use_attribute_docstrings=True)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def _encodable(text: str) -> str:
    if _LONE_SURROGATE.search(text):
        raise ValueError("half a character (a lone surrogate)")
    return text


_Text = Annotated[str, AfterValidator(_encodable)]


class ReplyClaim(BaseModel):
    """One sentence of the answer and the passages that say it."""

    model_config = _STRICT
    text: _Text
    """One sentence that can be understood alone, without citation marks."""
    sources: list[int | _Text]
    """The numbers of the passages that say what the sentence says."""


class Reply(BaseModel):
    """The answer to the question, or an abstention."""

    # The docstrings of these two classes are the descriptions in the schema: the model reads them.
    model_config = _STRICT
    abstained: bool
    """True when the passages do not answer the question; then there are no claims."""
    claims: list[ReplyClaim]
    """The answer, one sentence a claim."""


class _WithoutTitles(GenerateJsonSchema):
    """Titles repeat the names; the schema is sent with every question."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


# A string is one token, so braces inside of it do not count; one that is never closed reaches to the end.
_OBJECT_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[{}]', re.DOTALL)
_REASONING = re.compile(r"\s*<(?P<tag>think|thinking|thought|reasoning)>", re.IGNORECASE)
_FENCE = "```"


def reply_schema() -> dict[str, Any]:
    """Give the JSON schema of a reply, a new dict each time.

    Every property is required and no other allowed, as OpenAI's structured outputs ask.
    """
    return Reply.model_json_schema(schema_generator=_WithoutTitles)


def parse(raw: str, *, model: str) -> ModelAnswer:
    """Read a model's whole reply; `model` is its name, for the error.

    BadOutput, which holds `raw`, for everything but exactly one object of the schema: none or two, one that is cut
    off or stands in a list or an unclosed fence, a duplicate key, NaN, a trailing comma, a lone surrogate, nesting
    without end; also for an answer that is no abstention and says nothing. An abstention may carry claims; they are
    kept as they are.
    """

    def refuse(problem: str, cause: Exception | None = None) -> NoReturn:
        raise BadOutput(model=model, problem=problem, raw=raw) from cause

    try:
        reply = Reply.model_validate(only_object(raw))
    except ValidationError as error:  # a ValueError too, but its own message quotes the input and runs over many lines
        first = error.errors(include_url=False, include_input=False)[0]
        refuse(f"{'.'.join(map(str, first['loc'])) or 'the object'}: {first['msg']}", error)
    except ValueError as error:
        refuse(str(error), error)
    if not reply.abstained and not any(claim.text.strip() for claim in reply.claims):
        refuse("it does not abstain and claims nothing")
    claims = tuple(ModelClaim(claim.text, tuple(map(str, claim.sources))) for claim in reply.claims)
    return ModelAnswer(reply.abstained, claims)


def only_object(raw: str) -> Any:
    """Read the one JSON object of a reply, strictly. ValueError says what it holds instead."""
    return strict_json.loads(_only_stretch(raw))


def _only_stretch(raw: str) -> str:
    """Give the one stretch from an opening brace to the brace that closes it; ValueError when it is not alone."""
    text = _without_reasoning(raw.removeprefix("\ufeff"))
    start = text.find("{")
    if start < 0:
        raise ValueError("it holds no JSON object" if text.strip() else "it is empty")
    before, after = text[:start], text[_closing_brace(text, start) :]
    if "{" in after or "}" in before + after:
        raise ValueError("it holds more than one JSON object, or a stray brace")
    if before.count("[") > before.count("]") or after.lstrip().startswith(("]", ",")):
        raise ValueError("its object stands in a list")
    if before.count(_FENCE) % 2 and not after.lstrip().startswith(_FENCE):
        raise ValueError("its code fence is not closed: it was cut off")
    return text[start : len(text) - len(after)]


def _without_reasoning(text: str) -> str:
    while opened := _REASONING.match(text):
        closed = re.compile(f"</{opened['tag']}>", re.IGNORECASE).search(text, opened.end())
        if closed is None:
            raise ValueError(f"its <{opened['tag']}> block is not closed: it was cut off")
        text = text[closed.end() :]
    return text


def _closing_brace(text: str, start: int) -> int:
    depth = 0
    for token in _OBJECT_TOKEN.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    raise ValueError("its JSON object is not closed: it was cut off")
