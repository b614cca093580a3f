"""What answers a request: an endpoint with all its ways to fail, recorded replies, quotation."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidencedesk.errors import ModelError, ModelUnavailable
from evidencedesk.llm import LLMClient, OpenAIClient, QuotingAnswerer, RecordedReplies
from evidencedesk.records import Chunk, Location, ModelRequest, NumberedPassage

needs_openai = pytest.mark.skipif(importlib.util.find_spec("openai") is None, reason="openai is not installed")

SCHEMA = {"type": "object", "properties": {"abstained": {"type": "boolean"}}, "required": ["abstained"]}
REPLY = '{"abstained": true, "claims": []}'


def make_passage(text: str, *, number: int = 1, title: str = "Shop rules", heading: str = "", lang: str = "en"):
    above = "\n".join(line for line in (title, heading) if line)
    chunk_id = f"shop-v{number}:c0"
    location = Location("shop.md", heading, 1, 1)
    chunk = Chunk(chunk_id, f"shop-v{number}", f"v{number}", lang, "current", text, f"{above}\n{text}", location)
    return NumberedPassage(number, f"{title} (line 1) [{chunk_id}]", chunk)


def make_request(question: str = "How long?", *passages: NumberedPassage) -> ModelRequest:
    return ModelRequest(question, passages, "Answer in JSON.", "Passages and question.", SCHEMA)


# ---------------------------------------------------------------- recorded replies


def test_a_recorded_question_has_its_reply_and_every_question_that_was_asked_is_kept():
    replies = RecordedReplies({"How long?": REPLY})
    assert replies.complete(make_request("How long?")) == REPLY
    with pytest.raises(
        ModelError, match="recorded replies failed: no reply is recorded for the question 'How much\\?'"
    ):
        replies.complete(make_request("How much?"))
    assert replies.questions == ["How long?", "How much?"]


def test_recorded_replies_are_read_from_lines_with_a_raw_text_or_an_object(tmp_path):
    file = tmp_path / "replies.jsonl"
    rows = [
        {"question": "কত দিন?", "reply": {"abstained": True, "claims": []}},
        {"question": "a\u2028b", "reply": "no JSON"},
    ]
    file.write_bytes(b"\xef\xbb\xbf" + "\r\n\r\n".join(json.dumps(r, ensure_ascii=False) for r in rows).encode())
    replies = RecordedReplies.from_jsonl(file, name="gpt-x of May")
    assert replies.name == "gpt-x of May"
    assert json.loads(replies.complete(make_request("কত দিন?"))) == {"abstained": True, "claims": []}
    assert replies.complete(make_request("a\u2028b")) == "no JSON"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"question": "b"', "Expecting"),
        ("[1]", 'a line must be {"question": ..., "reply": ...}'),
        ('{"question": "b"}', 'a line must be {"question": ..., "reply": ...}'),
        ('{"question": "b", "reply": "x", "note": 1}', "and nothing else"),
        ('{"question": "b", "reply": "x", "reply": "y"}', "the key 'reply' stands twice in one object"),
        ('{"question": " ", "reply": "x"}', "question must be text, not ' '"),
        ('{"question": "b", "reply": 5}', "reply must be text or an object, not 5"),
        ('{"question": "a", "reply": "x"}', "the question 'a' has a reply already"),
        (b"\xff", "invalid start byte"),
    ],
)
def test_a_line_that_is_no_recorded_reply_is_named(tmp_path, line, message):
    """BR-111: nothing is passed over in silence."""
    file = tmp_path / "replies.jsonl"
    line = line if isinstance(line, bytes) else line.encode()
    file.write_bytes(b'{"question": "a", "reply": "x"}\n\n' + line + b"\n")
    with pytest.raises(ValueError, match="replies.jsonl, line 3: ") as caught:
        RecordedReplies.from_jsonl(file)
    assert message in str(caught.value)


# ---------------------------------------------------------------- OpenAI-compatible endpoints


class Scripted(BaseHTTPRequestHandler):
    """Answers each request with what the server's `answer` makes of its body: a status and a body, or "hang"."""

    def do_POST(self):
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, sent))
        answer = self.server.answer(sent)
        if answer == "hang":
            self.server.released.wait(10)
            return
        status, body = answer
        content = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("retry-after-ms", "1")
        self.send_header("Content-Type", "text/html" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch) -> Iterator[ThreadingHTTPServer]:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    class Server(ThreadingHTTPServer):
        def handle_error(self, request, client_address):
            """A connection that the test broke is no news."""

    with Server(("127.0.0.1", 0), Scripted) as made:
        made.requests, made.answer, made.released = [], lambda sent: (200, completion()), threading.Event()
        threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield made
        made.released.set()
        made.shutdown()


def completion(content: object = REPLY, finish_reason: str = "stop", **message: object) -> dict[str, object]:
    choice = {
        "index": 0,
        "finish_reason": finish_reason,
        "message": {"role": "assistant", "content": content, **message},
    }
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def error(message: str, **facts: object) -> dict[str, object]:
    return {"error": {"message": message, **facts}}


def at(server: ThreadingHTTPServer, **options: object) -> OpenAIClient:
    url = f"http://user:secret@127.0.0.1:{server.server_port}/v1"
    return OpenAIClient("m", **({"base_url": url, "api_key": "sk-12345", "max_retries": 0} | options))


def fields_sent(server: ThreadingHTTPServer) -> list[dict[str, object]]:
    """What was sent besides model and messages, a request each."""
    return [{k: v for k, v in sent.items() if k not in ("model", "messages")} for _, sent in server.requests]


BY_SCHEMA = {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True}}
BY_OBJECT = {"type": "json_object"}


@needs_openai
def test_a_request_is_one_system_and_one_user_text_held_to_its_schema(server):
    client: LLMClient = at(server, max_output_tokens=500)
    assert client.name == "m"
    assert client.complete(make_request()) == REPLY
    ((path, sent),) = server.requests
    assert path.startswith("/v1/chat/completions")
    assert sent == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Answer in JSON."},
            {"role": "user", "content": "Passages and question."},
        ],
        "temperature": 0,
        "max_tokens": 500,
        "response_format": BY_SCHEMA,
    }


@needs_openai
@pytest.mark.parametrize("structured", ["json_schema", "json_object", "none"])
def test_the_form_that_a_host_names_is_sent_and_kept_to(server, structured):
    expected = {
        "json_schema": {"response_format": BY_SCHEMA},
        "json_object": {"response_format": BY_OBJECT},
        "none": {},
    }
    at(server, structured=structured, temperature=None).complete(make_request())
    assert fields_sent(server) == [expected[structured]]
    server.answer = lambda sent: (400, error("response_format is not supported"))
    with pytest.raises(ModelError, match="response_format is not supported"):
        at(server, structured=structured).complete(make_request())
    assert len(server.requests) == 2


def understands(*forms: str, status: int = 400, body: object = None):
    """A server that knows only some forms of structured output."""

    def answer(sent: dict[str, object]):
        form = sent.get("response_format", {"type": "none"})["type"]
        return (200, completion()) if form in forms else (status, body or error(f"response_format {form} is unknown"))

    return answer


@needs_openai
@pytest.mark.parametrize(
    ("answer", "tries"),
    [
        (understands("json_schema"), ["json_schema"]),
        (understands("json_object"), ["json_schema", "json_object"]),
        (understands("none"), ["json_schema", "json_object", "none"]),
        (understands("none", status=422, body={"detail": "Extra inputs"}), ["json_schema", "json_object", "none"]),
        (understands("none", status=400, body="bad request"), ["json_schema", "json_object", "none"]),
        (
            understands("none", status=500, body=error("failed to parse grammar")),
            ["json_schema", "json_object", "none"],
        ),
    ],
)
def test_a_server_that_refuses_a_form_is_asked_with_the_next_and_remembered(server, answer, tries):
    server.answer = answer
    client = at(server)
    assert [client.complete(make_request()) for _ in range(2)] == [REPLY, REPLY]
    sent = [fields.get("response_format", {"type": "none"})["type"] for fields in fields_sent(server)]
    assert sent == [*tries, tries[-1]]


@needs_openai
def test_a_form_is_not_given_up_for_a_request_that_no_form_would_have_saved(server):
    server.answer = lambda sent: (400, error("bad request"))
    client = at(server)
    with pytest.raises(ModelError, match="refused the request .*bad request.*context length"):
        client.complete(make_request())
    assert len(server.requests) == 3
    server.answer = lambda sent: (200, completion())
    client.complete(make_request())
    assert fields_sent(server)[-1]["response_format"] == BY_SCHEMA


@needs_openai
@pytest.mark.parametrize(
    "refusal",
    [
        error("Unsupported value: 'temperature' does not support 0", param="temperature", code="unsupported_value"),
        {"detail": [{"loc": ["body", "temperature"], "msg": "not permitted", "input": {"response_format": 1}}]},
    ],
)
def test_a_model_without_temperature_is_asked_without(server, refusal):
    server.answer = lambda sent: (400, refusal) if "temperature" in sent else (200, completion())
    client = at(server)
    client.complete(make_request())
    client.complete(make_request())
    without = {"response_format": BY_SCHEMA}
    assert fields_sent(server) == [{"temperature": 0, **without}, without, without]


@needs_openai
def test_a_model_that_calls_the_limit_otherwise_is_asked_by_its_name(server):
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    refusal = error(said, param="max_tokens", code="unsupported_parameter")
    server.answer = lambda sent: (400, refusal) if "max_tokens" in sent else (200, completion())
    client = at(server, temperature=None, max_output_tokens=500, structured="none")
    client.complete(make_request())
    client.complete(make_request())
    assert fields_sent(server) == [{"max_tokens": 500}, {"max_completion_tokens": 500}, {"max_completion_tokens": 500}]


@needs_openai
@pytest.mark.parametrize(
    "key", ["sk-secret123\n", " sk-secret123", "sk-secret\u2019123", "sk-secret 123", "sk-secret\u200b123"]
)
def test_a_key_that_cannot_be_sent_is_never_shown(server, key):
    client = at(server, api_key=key)
    if key.strip() == "sk-secret123":
        assert client.complete(make_request())
    else:
        with pytest.raises(ModelUnavailable, match="set OPENAI_API_KEY anew") as caught:
            client.complete(make_request())
        assert "secret" not in str(caught.value)


@needs_openai
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (completion('{"abstained": tr', "length"), "its reply was cut at the limit of tokens"),
        (completion("", "length"), "its reply was cut"),
        (completion(None, "content_filter"), "withheld by the server's content filter"),
        (completion(None, refusal="I cannot help with that."), r"refused to answer \(I cannot help with that\.\)"),
        (completion(""), "its reply is empty"),
        (completion(" \n"), "its reply is empty"),
        (completion(None, "tool_calls"), "its reply is empty .*tool_calls"),
        (completion([{"type": "text", "text": "x"}]), "its reply is empty"),
        ({"choices": []}, "no OpenAI-compatible endpoint"),
        ({"choices": None}, "no OpenAI-compatible endpoint"),
        ({"choices": [{"index": 0}]}, "no OpenAI-compatible endpoint"),
        ({"error": {"message": "key limit exceeded"}}, r"can be read \(key limit exceeded\)"),
        ("<html>hello</html>", "no OpenAI-compatible endpoint"),
    ],
)
def test_what_is_no_whole_reply_is_an_error_and_never_a_shorter_answer(server, body, message):
    """BR-107: a reply that was cut is told from one that is whole, whatever it holds."""
    server.answer = lambda sent: (200, body)
    with pytest.raises(ModelError, match=f"The model m failed: .*{message}") as caught:
        at(server).complete(make_request())
    assert type(caught.value) is ModelError


@needs_openai
@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (401, error("bad key sk-12345"), ModelUnavailable, r"refused it .*bad key \*\*\*.*OPENAI_API_KEY"),
        (403, error("not for you"), ModelUnavailable, "not for you.*check the model"),
        (404, error("model m not found"), ModelUnavailable, "model m not found.*check the model"),
        (400, error("too many tokens", code="context_length_exceeded"), ModelError, "too many tokens.*context length"),
        (400, error("flagged", code="content_filter"), ModelError, "refused the request .*flagged"),
        (413, error("too large"), ModelError, "too large"),
        (429, error("slow down"), ModelError, "answers no more requests for now .*slow down.*the account's limits"),
        (500, error("crashed"), ModelError, "crashed.*look at the server's log"),
        (503, "<html>busy</html>", ModelError, "did not answer"),
    ],
)
def test_a_refusal_is_sent_once_and_names_the_endpoint_without_password_and_key(server, status, body, kind, message):
    server.answer = lambda sent: (status, body)
    with pytest.raises(ModelError, match=f"The model m .*http://127.0.0.1.*{message}") as caught:
        at(server).complete(make_request())
    assert type(caught.value) is kind
    assert not any(word in str(caught.value) for word in ("secret", "sk-12345"))
    assert len(server.requests) == 1


@needs_openai
def test_passing_trouble_is_tried_again_and_lasting_trouble_is_not_tried_for_ever(server):
    troubles = [429, 503]
    server.answer = lambda sent: (troubles.pop(0), error("busy")) if troubles else (200, completion())
    assert at(server, max_retries=2).complete(make_request()) == REPLY
    assert len(server.requests) == 3
    server.answer, server.requests = lambda sent: (429, error("busy")), []
    with pytest.raises(ModelError, match="busy"):
        at(server, max_retries=1).complete(make_request())
    assert len(server.requests) == 2


@needs_openai
def test_a_server_that_hangs_is_given_up_within_the_time_out(server):
    server.answer = lambda sent: "hang"
    began = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r"no answer from http://127.* within 0.2 seconds; .*timeout_seconds"):
        at(server, timeout_seconds=0.2).complete(make_request())
    assert time.monotonic() - began < 5


@needs_openai
def test_without_a_server_a_key_or_a_url_the_model_is_unavailable(server):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    with pytest.raises(ModelUnavailable, match=f"m is not available here: no answer from {nowhere} .*start the server"):
        at(server, base_url=nowhere).complete(make_request())
    with pytest.raises(ModelUnavailable, match="there is no key; set OPENAI_API_KEY"):
        OpenAIClient("m").complete(make_request())
    with pytest.raises(ModelUnavailable, match="is no usable base URL .*correct OPENAI_BASE_URL"):
        at(server, base_url="http://127.0.0.1:port/v1").complete(make_request())


def test_without_the_package_openai_the_model_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ModelUnavailable, match=r'pip install "evidencedesk\[openai\]"'):
        OpenAIClient("m", base_url="http://127.0.0.1:1").complete(make_request())


@pytest.mark.parametrize(
    "options",
    [
        {"model": " "},
        {"max_retries": -1},
        {"timeout_seconds": 0},
        {"max_output_tokens": 0},
        {"temperature": 3},
        {"temperature": float("nan")},
        {"structured": "xml"},
    ],
)
def test_wrong_settings_of_an_endpoint_are_value_errors(options):
    with pytest.raises(ValueError, match="must"):
        OpenAIClient(**({"model": "m"} | options))


# ---------------------------------------------------------------- quotation


def quoted(question: str, *texts: str | NumberedPassage, **options: object) -> list[str]:
    """What is quoted from passages with these texts, in the order of the reply."""
    passages = [t if isinstance(t, NumberedPassage) else make_passage(t, number=n) for n, t in enumerate(texts, 1)]
    reply = json.loads(QuotingAnswerer(**options).complete(make_request(question, *passages)))
    assert reply["abstained"] == (not reply["claims"])
    return [claim["text"] for claim in reply["claims"]]


RETURNS = (
    "You can return a new, unridden bike within 30 days of delivery. Bring it to our store with the invoice; a full"
    " refund follows after a short check."
)
REFUNDS = (
    "Refunds go to the card that you paid with. If you paid in cash, we send the money by bKash. It reaches you within"
    " 5 working days of the check."
)


def test_the_reply_is_the_sentence_that_answers_with_the_number_of_its_passage():
    request = make_request(
        "How long do I have to return a bike?", make_passage(REFUNDS), make_passage(RETURNS, number=2)
    )
    assert QuotingAnswerer().name == "quoting"
    assert json.loads(QuotingAnswerer().complete(request)) == {
        "abstained": False,
        "claims": [{"text": "You can return a new, unridden bike within 30 days of delivery.", "sources": [2]}],
    }


@pytest.mark.parametrize("question", ["Do you sell scooters?", "how is it?", "???", "স্কুটার আছে?"])
def test_a_question_that_shares_nothing_with_the_passages_is_not_answered(question):
    assert quoted(question, RETURNS, REFUNDS) == []
    assert quoted(question) == []


def test_a_sentence_that_shares_too_little_is_no_answer_unless_the_host_says_so():
    question = "Will the store in Dhaka repair the hydraulic brakes of my cargo bike on public holidays?"
    assert quoted(question, RETURNS) == []
    assert quoted(question, RETURNS, min_score=0)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How long is a bike covered?", "The cover of a bike lasts five years or 60 months."),
        ("How much is the cover of a bike?", "The cover of a bike costs 900 taka."),
        ("When did the cover of a bike begin?", "The cover of a bike was new in 2019."),
        ("How many parts does the cover of a bike have?", "The cover of a bike has 14 parts."),
        ("বাইকের কভার কত দিনের?", "বাইকের কভার ৬০ দিনের।"),
        ("বাইকের কভার কত টাকা?", "বাইকের কভার ৯০০ টাকা।"),
        ("বাইকের কভার কবে চালু হয়?", "বাইকের কভার ২০১৯ সালে চালু।"),
    ],
)
def test_what_a_question_asks_for_decides_among_sentences_with_the_same_words(question, answer):
    english = (
        "The cover of a bike is good. The cover of a bike costs 900 taka. The cover of a bike has 14 parts. The cover of a"
        " bike was new in 2019. The cover of a bike lasts five years or 60 months."
    )
    bangla = "বাইকের কভার ভালো। বাইকের কভার ৯০০ টাকা। বাইকের কভার ৬০ দিনের। বাইকের কভার ২০১৯ সালে চালু।"
    texts = (make_passage(english), make_passage(bangla, number=2, lang="bn"))
    assert quoted(question, *texts, most_sentences=1) == [answer]


def test_as_long_as_is_no_answer_to_how_long():
    parts = "Helmets can be returned as long as the seal is unbroken."
    assert quoted("How long can a bike be returned?", parts, RETURNS, most_sentences=1) == [RETURNS[:63]]


def test_a_question_is_answered_from_the_passages_in_its_own_script_where_these_share_a_word():
    english = make_passage("Order E21 with bKash takes 2 days. Error E21 means that the battery is hot.")
    bangla = make_passage("ডিসপ্লেতে E21 দেখালে ব্যাটারি গরম।", number=2, lang="bn")
    assert quoted("E21 মানে কী?", english, bangla, min_score=0) == ["ডিসপ্লেতে E21 দেখালে ব্যাটারি গরম।"]
    assert quoted("E21 মানে কী?", english, min_score=0)[0] in english.chunk.text
    assert quoted("What is error E21?", english, bangla)[0] == "Error E21 means that the battery is hot."


def test_a_sentence_that_begins_with_it_brings_the_one_before():
    assert quoted("Within how many working days of the check?", REFUNDS) == [
        "If you paid in cash, we send the money by bKash.",
        "It reaches you within 5 working days of the check.",
    ]
    bangla = "টাকা বিকাশে পাঠানো হয়। এটি ৫ কর্মদিবসে পৌঁছায়।"
    assert quoted("কত কর্মদিবসে পৌঁছায়?", bangla) == ["টাকা বিকাশে পাঠানো হয়।", "এটি ৫ কর্মদিবসে পৌঁছায়।"]


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        (
            "Is damage from a crash covered?",
            "Tyres wear out and are not covered. Neither is damage from a crash.",
            ["Tyres wear out and are not covered.", "Neither is damage from a crash."],
        ),
        (
            "What do you charge in Chattogram?",
            "Orders of 5,000 taka or more ship free. Below that we charge 80 taka in Chattogram.",
            ["Orders of 5,000 taka or more ship free.", "Below that we charge 80 taka in Chattogram."],
        ),
        (
            "চট্টগ্রামে চার্জ কত টাকা?",
            "৫,০০০ টাকা বা তার বেশি কেনাকাটায় ডেলিভারি ফ্রি। এর কম হলে চট্টগ্রামে চার্জ ৮০ টাকা।",
            ["৫,০০০ টাকা বা তার বেশি কেনাকাটায় ডেলিভারি ফ্রি।", "এর কম হলে চট্টগ্রামে চার্জ ৮০ টাকা।"],
        ),
        (
            "Who on the team can read?",
            "We keep chats for 90 days. Only our support team can read them.",
            ["We keep chats for 90 days.", "Only our support team can read them."],
        ),
        (
            "Is a photo sent when torn or crushed?",
            "Look the parcel over. If it is torn or crushed, send us a photo.",
            ["Look the parcel over.", "If it is torn or crushed, send us a photo."],
        ),
    ],
)
def test_a_sentence_that_speaks_of_what_only_the_one_before_names_brings_it(question, text, expected):
    lang = "bn" if "চার্জ" in question else "en"
    assert quoted(question, make_passage(text, lang=lang)) == expected


def test_them_with_its_antecedent_in_the_sentence_stands_alone():
    text = "Your data is safe. We keep support chats for 90 days and then delete them."
    assert quoted("When do you delete support chats?", text) == [
        "We keep support chats for 90 days and then delete them."
    ]


def test_sentences_of_one_passage_are_quoted_in_the_order_in_which_they_stand_there():
    text = "A bike has a cover for rain. The shop is red. The rain cover of a bike costs 900 taka."
    assert quoted("How much is the rain cover of a bike?", text) == [
        "A bike has a cover for rain.",
        "The rain cover of a bike costs 900 taka.",
    ]


def test_a_duration_that_leans_on_the_sentence_before_wins_over_sentences_with_the_word_and_no_duration():
    passage = make_passage(REFUNDS, heading="How refunds are paid")
    assert quoted("How long does a refund take?", passage) == [
        "If you paid in cash, we send the money by bKash.",
        "It reaches you within 5 working days of the check.",
    ]
    assert quoted("Where does a refund go?", passage)[0] == "Refunds go to the card that you paid with."


def test_a_list_entry_brings_the_sentence_in_front_of_the_list_and_loses_its_mark():
    text = "We cancel an account:\n\n- For HEY: 60 days after the trial\n- For Basecamp: 90 days after the trial\n"
    assert quoted("How many days after the trial for Basecamp?", text) == [
        "We cancel an account:",
        "For Basecamp: 90 days after the trial",
    ]
    whole = "Rules\n\n1. Bikes are red.\n2. Helmets are blue.\n"
    assert quoted("Which helmets are blue?", whole, most_sentences=1) == ["Helmets are blue."]


def test_a_table_row_brings_its_header_and_neither_header_nor_delimiter_is_an_answer():
    table = "| Zone | Delivery charge |\n|------|--------|\n| Dhaka | 150 taka |\n| Chattogram | 80 taka |\n"
    assert quoted("What is the delivery charge for Chattogram?", table) == [
        "| Zone | Delivery charge |",
        "| Chattogram | 80 taka |",
    ]
    assert quoted("Zone delivery charge", table, most_sentences=1, min_score=0) == []


def test_headings_fences_and_rules_are_never_quoted():
    text = (
        "# Returning a bike\n\n```\nreturn bike 30 days. return bike\n```\n\n---\n\n<!-- bike return -->\n\n"
        "The bike must be new.\n"
    )
    assert quoted("return a bike", text, min_score=0) == ["The bike must be new."]
    assert quoted("return days", text, min_score=0) == []


def test_a_sentence_without_end_is_no_answer():
    assert quoted("return a bike", "You can return a bike " + "or a helmet " * 60 + "here.", min_score=0) == []


def test_reference_marks_of_the_document_itself_are_not_taken_along():
    assert quoted("When did the queen die?", "The queen did die in 1953.[2][note3] Then came another.") == [
        "The queen did die in 1953."
    ]


def test_the_same_request_gives_the_same_reply_and_wrong_settings_are_value_errors():
    request = make_request("bike refund", make_passage(RETURNS), make_passage(RETURNS, number=2))
    assert QuotingAnswerer().complete(request) == QuotingAnswerer().complete(request)
    for options in ({"most_sentences": 0}, {"min_score": -1}, {"min_score": float("nan")}):
        with pytest.raises(ValueError, match="must"):
            QuotingAnswerer(**options)


fragments = st.sampled_from(
    ["bike", "return", "It", "এটি", "৩০ দিন", ". ", "। ", "\n", "\n\n", "- ", "| a | b |\n", "|---|---|\n", "```\n", "# ",
     "[1]", "2019", "taka 500", "?", "  ", "1. ", "\x00", "\u200d"]
)  # fmt: skip


@settings(deadline=None, max_examples=150)
@given(st.lists(fragments, max_size=30).map(" ".join), st.lists(fragments, max_size=6).map(" ".join))
def test_whatever_the_text_what_is_quoted_stands_in_it_in_whole_sentences(text, question):
    found = quoted(question, text, min_score=0)
    assert len(found) <= 2
    assert all(sentence and sentence in text for sentence in found)


def test_the_benchmark_counts_a_quotation_that_holds_the_phrase_and_keeps_every_question():
    pytest.importorskip("bm25s")
    from benchmarks.common import Case
    from benchmarks.quoting import Asked, Counts, FirstSentence, PlainOverlap, count, in_half

    def asked(question: str, phrase: str = "", **case: object) -> Asked:
        fields = {"phrases": (phrase,), "answerable": bool(phrase)} | case
        request = make_request(question, make_passage(RETURNS))
        return Asked(Case("c", question, **fields), request, bool(phrase))

    rows = [asked("How long for a bike?", "30  DAYS"), asked("a check of the invoice?", "refund"), asked("a bike?")]
    assert count(FirstSentence(), rows) == Counts(1, 0, 2, 2 * 63, 1, 1)
    assert count(PlainOverlap(), rows).right == 2
    assert count(QuotingAnswerer(), [asked("scooters?", "30 days")]) == Counts(0, 1, 1, 0, 0, 0)
    assert [in_half("c", half) for half in ("odd", "even", "all")].count(True) == 2


def test_importing_the_package_imports_no_client():
    script = "import sys, evidencedesk.llm; print({'openai', 'httpx'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
