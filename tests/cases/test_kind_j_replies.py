"""Kind J: what models reply, through the whole way of an answer. What no other test proves whole."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from builders import make_source, open_desk

from evidencedesk import Answer, Desk, RecordedReplies

QUESTION = "Which bikes are red?"
CLAIM = "Bikes are red."
VALID = json.dumps({"abstained": False, "claims": [{"text": CLAIM, "sources": ["shop-v1:c0"]}]})

WRAPPED = {
    "bare": VALID,
    "a fence": f"```json\n{VALID}\n```",
    "a fence without a name": f"```\n{VALID}\n```",
    "a fence in capitals": f"```JSON\n{VALID}\n```",
    "prose before": f"Here is the answer:\n\n{VALID}",
    "prose behind": f"{VALID}\n\nI hope that helps.",
    "a mark and CRLF": f"\ufeff```json\r\n{VALID}\r\n```\r\n",
    "reasoning": f"<think>Red, I think. {{not JSON}}</think>\n{VALID}",
    "white space": f"\n \t{json.dumps(json.loads(VALID), indent=4)}\n\n",
}
SPOILT = {
    "a comma too many": VALID.replace("]}]}", "],}]}"),
    "single quotes": VALID.replace('"', "'"),
    "a comment": VALID.replace("{", "{ // the answer\n", 1),
    "two objects": f"{VALID}\n{VALID}",
    "Python's own words": VALID.replace("false", "False"),
    "an unclosed fence": f"```json\n{VALID}",
    "the text alone": CLAIM,
    "nothing": " \n",
}


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with open_desk(sources=[make_source(CLAIM)]) as desk:
        yield desk


def answered(desk: Desk, reply: str) -> Answer:
    return desk.ask(QUESTION, llm=RecordedReplies({QUESTION: reply}))


@pytest.mark.parametrize("reply", WRAPPED.values(), ids=WRAPPED)
def test_an_object_is_found_in_whatever_a_model_wraps_it(desk: Desk, reply: str) -> None:
    """BR-105: whoever the model is."""
    answer = answered(desk, reply)
    assert (answer.reason, answer.text) == ("ok", f"{CLAIM} [shop-v1:c0]"), answer.detail


@pytest.mark.parametrize("reply", SPOILT.values(), ids=SPOILT)
def test_what_is_no_object_is_an_abstention_that_says_what_is_wrong(desk: Desk, reply: str) -> None:
    """BR-105: nothing is mended, nothing is half read."""
    answer = answered(desk, reply)
    assert (answer.abstained, answer.text, answer.citations, answer.claims) == (True, "", (), ())
    assert answer.reason in ("bad_output", "model_failed")
    assert answer.detail


@pytest.mark.parametrize("reply", WRAPPED.values(), ids=WRAPPED)
def test_a_reply_that_was_cut_anywhere_before_its_end_answers_nothing(desk: Desk, reply: str) -> None:
    """BR-107: after each of its characters; what follows the whole object may go, since it is none of the answer."""
    whole = reply.rindex("}") + 1
    needs_its_end = reply.lstrip("\ufeff").startswith("```")
    for length in range(len(reply.rstrip()) if needs_its_end else whole):
        answer = answered(desk, reply[:length])
        assert (answer.abstained, answer.text, answer.claims) == (True, "", ()), reply[:length]
