"""A model's reply is read whole and strictly, or refused whole: BadOutput with the raw text, never a part of an answer."""

from __future__ import annotations

import json
import pickle
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidencedesk.errors import BadOutput
from evidencedesk.records import ModelAnswer, ModelClaim
from evidencedesk.results import parse, reply_schema

RETURNS = "You can return a new, unridden bike within 30 days of delivery."
ANSWER = ModelAnswer(False, (ModelClaim(RETURNS, ("1", "kc-returns-v3:c0")),))


def reply(*claims: tuple[str, list[int | str]], abstained: bool = False) -> str:
    return json.dumps(
        {"abstained": abstained, "claims": [{"text": text, "sources": sources} for text, sources in claims]},
        ensure_ascii=False,
    )


VALID = reply((RETURNS, [1, "kc-returns-v3:c0"]))


def read(raw: str) -> ModelAnswer:
    return parse(raw, model="test-model")


def read_or_refused(raw: str) -> ModelAnswer | str:
    """The answer, or the raw text that the refusal holds."""
    try:
        return read(raw)
    except BadOutput as error:
        return error.raw


def refusal(raw: str) -> BadOutput:
    with pytest.raises(BadOutput) as caught:
        read(raw)
    assert caught.value.raw == raw
    assert caught.value.model == "test-model"
    return caught.value


def test_a_reply_becomes_claims_that_cite_what_they_cite_as_written():
    assert read(VALID) == ANSWER
    assert read(reply(("বাইক ৩০ দিনের মধ্যে ফেরত দেওয়া যায়।", ["১"]), ("No.", []))) == ModelAnswer(
        False, (ModelClaim("বাইক ৩০ দিনের মধ্যে ফেরত দেওয়া যায়।", ("১",)), ModelClaim("No.", ()))
    )


def test_an_abstention_needs_no_claims_and_keeps_those_it_has():
    assert read(reply(abstained=True)) == ModelAnswer(True, ())
    assert read(reply(("The passages do not say.", []), abstained=True)).claims == (
        ModelClaim("The passages do not say.", ()),
    )


@pytest.mark.parametrize("claims", [[], [("", [1])], [(" \n\u3000", [1])]])
def test_an_answer_that_says_nothing_is_bad_output(claims):
    assert refusal(reply(*claims)).problem == "it does not abstain and claims nothing"


@pytest.mark.parametrize(
    "raw",
    [
        f"```json\n{VALID}\n```",
        f"```\n{VALID}\n```",
        f"```JSON\n{VALID}\n```\n",
        f"```{VALID}```",
        f"Here is the answer:\n{VALID}",
        f"{VALID}\nI hope that helps [1].",
        f"JSON:\n\n```json\n{VALID}\n```\nThat's all.",
        f"\ufeff{VALID}",
        f"\ufeff```json\r\n{VALID}\r\n```\r\n",
        json.dumps(json.loads(VALID), indent=2).replace("\n", "\r\n"),
        f"<think>The passage says 30 days. {{Not 60.}}</think>\n{VALID}",
        f"<THINK>\nDraft: {reply(('Wrong.', [9]))}\n</think>\n\n```json\n{VALID}\n```",
        f"<think></think><reasoning>x</reasoning>{VALID}",
    ],
)
def test_what_models_put_around_the_object_is_left_aside(raw):
    """BR-105: fences, prose, upper case, byte-order mark, CRLF and reasoning."""
    assert read(raw) == ANSWER


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (VALID[:-1] + ",}", "Illegal trailing comma|Expecting property name"),
        (VALID.replace("]}]}", "],}]}"), "Illegal trailing comma|Expecting property name"),
        (VALID.replace('"', "'"), "Expecting property name enclosed in double quotes"),
        (VALID + VALID, "more than one"),
        (f"{VALID}\n\n{VALID}", "more than one"),
        (f"```json\n{VALID}\n```\n```json\n{VALID}\n```", "more than one"),
        (f"{VALID} }}", "stray brace"),
        (f"[{VALID}]", "stands in a list"),
        (f"[1, {VALID}", "stands in a list"),
        ("[]", "no JSON object"),
        ("null", "no JSON object"),
        ("true", "no JSON object"),
        (RETURNS, "no JSON object"),
        ("", "it is empty"),
        (" \r\n\ufeff".strip("\ufeff"), "it is empty"),
        (f"```json\n{VALID}", "fence is not closed"),
        (f"<think>{VALID}", "<think> block is not closed"),
        (f"<think>Hm.</think>{VALID[:-1]}", "not closed"),
        ('{"abstained": true, "abstained": false, "claims": []}', "the key 'abstained' stands twice"),
        ('{"abstained": true, "claims": [], "note": NaN}', "NaN is no number"),
        ('{"abstained": true, "claims": [-Infinity]}', "-Infinity is no number"),
        ('{"abstained": true, "claims": [], "note": "x"}', "note: Extra inputs"),
        ('{"abstained": true}', "claims: Field required"),
        ('{"claims": []}', "abstained: Field required"),
        ('{"abstained": "true", "claims": []}', "abstained: Input should be a valid boolean"),
        ('{"abstained": 1, "claims": []}', "abstained: Input should be a valid boolean"),
        ('{"abstained": true, "claims": null}', "claims: Input should be a valid list"),
        ('{"abstained": true, "claims": {}}', "claims: Input should be a valid list"),
        ('{"answer": ' + VALID + "}", "abstained: Field required"),
        ('{"abstained": false, "claims": ["Yes."]}', "claims.0: "),
        ('{"abstained": false, "claims": [{"text": "Yes."}]}', "claims.0.sources: Field required"),
        ('{"abstained": false, "claims": [{"text": null, "sources": []}]}', "claims.0.text: "),
        ('{"abstained": false, "claims": [{"text": "Yes.", "sources": 1}]}', "claims.0.sources: "),
        ('{"abstained": false, "claims": [{"text": "Yes.", "sources": [true]}]}', "claims.0.sources.0"),
        ('{"abstained": false, "claims": [{"text": "Yes.", "sources": [1.0]}]}', "claims.0.sources.0"),
        ('{"abstained": false, "claims": [{"text": "Yes.", "sources": [1e999]}]}', "1e999 is no number"),
        ('{"abstained": false, "claims": [{"text": "Yes.", "sources": [[1]]}]}', "claims.0.sources.0"),
        ('{"abstained": false, "claims": [{"text": "Yes.", "sources": [' + "9" * 5000 + "]}]}", "4300 digits"),
        ('{"abstained": false, "claims": [{"text": "Yes \\ud800.", "sources": [1]}]}', "lone surrogate"),
        ('{"abstained": false, "claims": [{"text": "Yes.", "sources": ["\\udfff"]}]}', "claims.0.sources.0"),
        ('{"abstained": false, "claims": [{"text": "Yes \n.", "sources": [1]}]}', "Invalid control character"),
        ('{"a":' * 200_000 + "1" + "}" * 200_000, "nested too deeply"),
        ('{"abstained": true, "claims": ' + "[" * 200_000 + "]" * 200_000 + "}", "nested too deeply"),
        ('{"' + '\\"' * 200_000, "not closed"),
        ("{" * 200_000, "not closed"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
def test_everything_else_is_refused_with_its_problem_and_the_raw_text(raw, problem):
    """BR-105: trailing comma, single quotes and the like are a typed error, not a guess."""
    assert any(part in refusal(raw).problem for part in problem.split("|"))


@pytest.mark.parametrize(
    "raw",
    [
        VALID,
        json.dumps(json.loads(VALID), indent=1),
        f"```json\n{VALID}\n```",
        f"<think>{VALID}</think>{VALID}",
        "Answer: " + reply(('বাইক ৩০ দিনে ফেরত। {sic} "[1]" ```', [1])),
        reply(abstained=True),
    ],
)
def test_a_reply_that_was_cut_off_anywhere_is_bad_output(raw):
    """BR-107: every proper prefix."""
    read(raw)
    for length in range(len(raw)):
        refusal(raw[:length])


def test_the_error_names_the_model_and_survives_a_process_boundary():
    error = refusal("no")
    assert str(error) == "The reply of the model test-model cannot be used: it holds no JSON object."
    assert pickle.loads(pickle.dumps(error)).raw == "no"


HAND_DAMAGED = [
    VALID.replace(":", "=", 1), VALID.replace("false", "False"), VALID.replace("false", "no"), VALID.replace("[", "(", 1),
    VALID.replace(", ", " ", 1), VALID + ",", VALID + ";", VALID + "\x00", "\x00" + VALID, VALID.replace("1", "01", 1),
    "// the answer\n" + VALID, VALID.replace("{", "{/* c */", 1), VALID.replace('"claims"', "claims"), f'"{VALID}"',
    json.dumps(VALID), VALID.replace("text", "Text"), VALID.replace("sources", "source"), f"<answer>{VALID}</answer>",
    VALID.replace("1", "+1", 1), VALID.replace("1", "0x1", 1), VALID.replace('"1', '"\\x31', 1), f"{VALID}\n{{}}",
    f"<think>{VALID}</thinking>", f"x</think>{VALID}", VALID.replace("bike", 'bike"', 1), VALID.replace('"', "\u201c"),
]  # fmt: skip


def damaged_replies() -> list[str]:
    """200 replies, each a valid one with one to four random changes; the same ones in every run."""
    chance = random.Random(20260601)
    valid = [
        VALID,
        f"```json\n{VALID}\n```",
        reply(("Yes.", [1]), ("বাইক ৩০ দিনে ফেরত।", ["২"])),
        reply(abstained=True),
    ]
    fragments = [*'{}[]",:\\`\n', "true", "null", "1", "-", "}{", "```", "\ud800", "\\u0000", "<think>", "e9", "'"]
    damaged = []
    while len(damaged) < 200:
        raw = chance.choice(valid)
        for _ in range(chance.randint(1, 4)):
            start = chance.randrange(len(raw))
            end = min(len(raw), start + chance.choice([0, 0, 1, 1, 2, 20]))
            kept = chance.choice(["", chance.choice(fragments), raw[start:end] * 2])
            raw = raw[:start] + kept + raw[end:]
        damaged.append(raw)
    return damaged


def strictly(raw: str) -> ModelAnswer:
    """What the standard library reads between the outermost braces."""
    content = json.loads(raw[raw.index("{") : raw.rindex("}") + 1])
    assert set(content) == {"abstained", "claims"}
    assert type(content["abstained"]) is bool
    claims = []
    for claim in content["claims"]:
        assert set(claim) == {"text", "sources"}
        assert {type(source) for source in claim["sources"]} <= {int, str}
        claims.append(ModelClaim(claim["text"], tuple(map(str, claim["sources"]))))
    return ModelAnswer(content["abstained"], tuple(claims))


def test_a_damaged_reply_is_refused_or_read_as_strict_json_says():
    """BR-105, BR-107: nothing between an answer and an error."""
    read_after_all = 0
    for raw in [*damaged_replies(), *HAND_DAMAGED]:
        outcome = read_or_refused(raw)
        assert outcome == raw or outcome == strictly(raw), raw
        read_after_all += outcome != raw
    assert 0 < read_after_all < 120


@given(st.text())
def test_any_text_around_and_instead_of_a_reply_gives_an_answer_or_bad_output(noise):
    for raw in (noise, noise + VALID, VALID + noise):
        assert read_or_refused(raw) in (ANSWER, raw)


_sources = st.lists(st.one_of(st.integers(), st.text(st.characters(exclude_categories=["Cs"]))))
_text = st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip)


@given(st.lists(st.tuples(_text, _sources), min_size=1))
def test_every_valid_reply_is_read_back_whole(claims):
    assert read(reply(*claims)) == ModelAnswer(
        False, tuple(ModelClaim(text, tuple(map(str, sources))) for text, sources in claims)
    )


def objects_of(schema: object) -> list[dict]:
    if isinstance(schema, dict):
        inside = [found for value in schema.values() for found in objects_of(value)]
        return [schema, *inside] if schema.get("type") == "object" else inside
    return [found for value in schema for found in objects_of(value)] if isinstance(schema, list) else []


def test_the_schema_sent_to_models_requires_every_property_and_allows_no_other():
    objects = objects_of(reply_schema())
    assert [list(found["properties"]) for found in objects] == [["abstained", "claims"], ["text", "sources"]]
    for found in objects:
        assert found["additionalProperties"] is False
        assert found["required"] == list(found["properties"])
        assert all(part.get("description") for part in found["properties"].values())


def test_a_caller_may_change_its_schema_without_changing_ours():
    reply_schema()["properties"].clear()
    assert "claims" in reply_schema()["properties"]
