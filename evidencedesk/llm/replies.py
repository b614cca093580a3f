"""Replies recorded from a model, for tests, lessons and evaluations without one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from evidencedesk import strict_json
from evidencedesk.errors import ModelError
from evidencedesk.records import ModelRequest


class RecordedReplies:
    """An `LLMClient` that gives each question the reply recorded for it, whatever the passages are.

    `replies` maps the question, exactly as it is asked, to the raw reply. `questions` lists what was asked, in order,
    the unknown ones too: its length is the number of calls. A question without a reply is a ModelError that names it.
    """

    def __init__(self, replies: Mapping[str, str], *, name: str = "recorded replies") -> None:
        self.name = name
        self.questions: list[str] = []
        self._replies = dict(replies)

    @classmethod
    def from_jsonl(cls, path: str | Path, *, name: str = "recorded replies") -> RecordedReplies:
        """Read a UTF-8 file with one `{"question": ..., "reply": ...}` a line; blank lines are passed over.

        `reply` is the raw text, or an object, which stands for its JSON. ValueError names file and line of what is
        neither, of an unknown or repeated key and of a question that came before; OSError when it cannot be opened.
        """
        path = Path(path)
        data = path.read_bytes()
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            number = data.count(b"\n", 0, error.start) + 1
            raise ValueError(f"{path.name}, line {number}: {error}") from error
        replies: dict[str, str] = {}
        for number, line in strict_json.lines(text):
            try:
                question, reply = _recorded(line)
                if question in replies:
                    raise ValueError(f"the question {question!r} has a reply already")
            except RecursionError as error:
                raise ValueError(f"{path.name}, line {number}: nested too deeply") from error
            except ValueError as error:
                raise ValueError(f"{path.name}, line {number}: {error}") from error
            replies[question] = reply
        return cls(replies, name=name)

    def complete(self, request: ModelRequest) -> str:
        self.questions.append(request.question)
        try:
            return self._replies[request.question]
        except KeyError:
            problem = f"no reply is recorded for the question {request.question!r}"
            raise ModelError(model=self.name, problem=problem) from None


def _recorded(line: str) -> tuple[str, str]:
    row = strict_json.loads(line)
    if not isinstance(row, dict) or row.keys() != {"question", "reply"}:
        raise ValueError('a line must be {"question": ..., "reply": ...} and nothing else')
    question, reply = row["question"], row["reply"]
    if not isinstance(question, str) or not question.strip():
        raise ValueError(f"question must be text, not {question!r}")
    if isinstance(reply, dict):
        return question, json.dumps(reply, ensure_ascii=False)
    if not isinstance(reply, str):
        raise ValueError(f"reply must be text or an object, not {reply!r}")
    return question, reply
