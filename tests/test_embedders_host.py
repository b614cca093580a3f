"""Adapters for the embedding objects of other libraries, and the limits that embedders declare."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from evidencedesk import Desk
from evidencedesk.embeddings import (
    CallableEmbedder,
    E5Embedder,
    EmbedderIdentity,
    LangChainEmbedder,
    OpenAIEmbedder,
    SentenceTransformerEmbedder,
    ToyEmbedder,
    by_identity,
    counting,
    embed_in_batches,
    identity,
    longer_than_limit,
    resolve,
)
from evidencedesk.errors import BadVectors, EmbedderError, EmbedderMismatch, EmbedderUnavailable

ENGLISH = [
    "A book may be kept for 21 days.",
    "A late book costs 10 taka a day.",
    "The pool is open from 6 in the morning.",
    "Dogs and cats are welcome.",
]


def host(function: Callable[[list[str]], object], **attributes: object) -> CallableEmbedder:
    return CallableEmbedder(function, "acme", 2, **attributes)


def embed(embedder, *texts: str, kind="document"):
    return embed_in_batches(embedder, texts, texts, kind)


# ---------------------------------------------------------------- sentence-transformers models


class Model2:
    """What sentence-transformers offered before version 2.4; `read` holds the texts as the network would see them."""

    max_seq_length: object = 6

    def __init__(self, seed: int = 1):
        random = np.random.default_rng(seed)
        self.weights = {
            "0.auto_model.embeddings.weight": random.normal(size=(500, 8)).astype(np.float32),
            "1.linear.weight": random.normal(size=(8, 8)).astype(np.float32),
            "0.auto_model.embeddings.position_ids": np.arange(512, dtype=np.int64),
        }
        self.read: list[str] = []

    def encode(self, sentences, batch_size=32, show_progress_bar=None):
        assert show_progress_bar is False
        self.read += sentences
        return ToyEmbedder(8).embed_documents(sentences)

    def get_sentence_embedding_dimension(self):
        return 8

    def state_dict(self):
        return self.weights


class Model3(Model2):
    """Versions 2.4 to 4: prompts."""

    def __init__(self, seed: int = 1, default: str | None = None, **prompts: str):
        super().__init__(seed)
        self.prompts, self.default_prompt_name = prompts, default

    def encode(self, sentences, prompt_name=None, prompt=None, batch_size=32, show_progress_bar=None, task=None):
        name = prompt_name or self.default_prompt_name
        prompt = (self.prompts[name] if name else "") if prompt is None else prompt
        return super().encode([prompt + text for text in sentences], batch_size, show_progress_bar)


class Model5(Model3):
    """Version 5 onwards: questions and documents each have a method, and the dimension has another name."""

    def __init__(self, seed: int = 1, default: str | None = None, **prompts: str):
        super().__init__(seed, default, **({"query": "", "document": ""} | prompts))

    def encode_query(self, inputs, prompt_name=None, prompt=None, **options):
        name = prompt_name or (None if prompt is not None else "query")
        return self.encode(inputs, prompt_name=name, prompt=prompt, **options)

    def encode_document(self, inputs, prompt_name=None, prompt=None, **options):
        name = prompt_name or (None if prompt is not None else "document")
        return self.encode(inputs, prompt_name=name, prompt=prompt, **options)

    def get_embedding_dimension(self):
        return 8

    def get_sentence_embedding_dimension(self):
        raise FutureWarning("renamed")


@pytest.mark.parametrize(
    ("model", "read"),
    [
        (Model2(), ["a", "b"]),
        (Model3(), ["a", "b"]),
        (Model3(query="q: ", passage="p: "), ["p: a", "q: b"]),
        (Model3(default="s", s="s: "), ["s: a", "s: b"]),
        (Model5(query="q: ", document="d: "), ["d: a", "q: b"]),
        (Model5(default="s", s="s: "), ["a", "b"]),
    ],
)
def test_a_model_of_any_version_reads_texts_with_its_own_prompt_or_with_the_prefix_in_its_place(model, read):
    for prefixes, expected in (({}, read), ({"query_prefix": "Q ", "document_prefix": "D "}, ["D a", "Q b"])):
        model.read.clear()
        embedder = SentenceTransformerEmbedder(model, name="bge", **prefixes)
        assert embed(embedder, "a").shape == embed(embedder, "b", kind="query").shape == (1, 8)
        assert model.read == expected


def test_a_model_is_identified_by_its_weights_prompts_and_limit_and_by_nothing_that_a_version_renames():
    first = identity(SentenceTransformerEmbedder(Model5()))
    renamed = Model5()
    renamed.weights = {f"0.model.{i}": w for i, w in enumerate(reversed(renamed.weights.values())) if w.ndim == 2}
    assert identity(SentenceTransformerEmbedder(renamed)) == first
    assert str(first).startswith("sentence-transformers (8 dimensions, fingerprint ")
    shorter = Model5()
    shorter.max_seq_length = 5
    others = (
        SentenceTransformerEmbedder(Model5(seed=2)),
        SentenceTransformerEmbedder(Model5(query="q: ")),
        SentenceTransformerEmbedder(Model5(), document_prefix="d: "),
        SentenceTransformerEmbedder(shorter),
        SentenceTransformerEmbedder(Model5(), name="bge"),
        SentenceTransformerEmbedder(Model5(), fingerprint="rev-1"),
    )
    assert len({first, *map(identity, others)}) == 7
    assert others[-1].fingerprint == "rev-1"
    with pytest.raises(EmbedderUnavailable, match="open the desk with that object"):
        by_identity(first)


def test_a_model_that_shows_no_weights_needs_a_fingerprint():
    """The ONNX back end: its `state_dict` is empty."""
    model = Model5()
    model.weights = {}
    with pytest.raises(ValueError, match='weights of Model5 cannot be read here; say which they are: fingerprint="'):
        SentenceTransformerEmbedder(model)
    assert SentenceTransformerEmbedder(model, fingerprint="rev-1").fingerprint == "rev-1"


def test_what_is_no_model_is_a_type_error_and_a_model_without_dimension_a_value_error():
    class NoWidth(Model5):
        def get_embedding_dimension(self):
            return None

    with pytest.raises(TypeError, match="dict is no sentence-transformers model: it has no encode"):
        SentenceTransformerEmbedder({})
    with pytest.raises(ValueError, match=r"NoWidth\.get_embedding_dimension\(\) must be a whole number .* not None"):
        SentenceTransformerEmbedder(NoWidth())
    with pytest.raises(ValueError, match=r"SentenceTransformerEmbedder\.name must not be empty"):
        SentenceTransformerEmbedder(Model5(), name="")
    with pytest.raises(TypeError, match="languages must be a set"):
        SentenceTransformerEmbedder(Model5(), languages="en")


# ---------------------------------------------------------------- LangChain's objects


class Sentences:
    """Stands for any LangChain embedding object."""

    def __init__(self):
        self.documents: list[list[str]] = []
        self.queries: list[str] = []

    def embed_documents(self, texts):
        self.documents.append(texts)
        return ToyEmbedder(8).embed_documents(texts).tolist()

    def embed_query(self, text):
        self.queries.append(text)
        return ToyEmbedder(8).embed_queries([text])[0].tolist()


def test_a_langchain_object_gets_documents_in_lists_and_questions_one_by_one():
    given = Sentences()
    embedder = LangChainEmbedder(given, name="acme", dimension=8, fingerprint="2", languages=frozenset({"en"}))
    vectors = embed_in_batches(embedder, ENGLISH, ENGLISH, batch_size=3)
    np.testing.assert_array_equal(vectors, embed(ToyEmbedder(8), *ENGLISH))
    embed(embedder, "How long?", "How much?", kind="query")
    assert given.documents == [ENGLISH[:3], ENGLISH[3:]]
    assert given.queries == ["How long?", "How much?"]
    assert (identity(embedder), embedder.languages) == (EmbedderIdentity("acme", 8, "2"), {"en"})


def test_the_dimension_of_a_langchain_object_is_learnt_by_one_call_when_first_asked_for():
    given = Sentences()
    embedder = LangChainEmbedder(given, name="acme", fingerprint="2")
    assert given.queries == []
    assert (embedder.dimension, embedder.dimension, len(given.queries)) == (8, 8, 1)


def test_a_langchain_object_that_fails_is_an_embedder_error_with_its_cause():
    class Down(Sentences):
        def embed_query(self, text):
            raise OSError("connection refused")

    message = "The embedder acme failed: its dimension could not be learnt: OSError: connection refused"
    with pytest.raises(EmbedderError, match=message) as caught:
        identity(LangChainEmbedder(Down(), name="acme", fingerprint="2"))
    assert isinstance(caught.value.__cause__, OSError)


def test_wrong_arguments_for_a_langchain_object_say_what_is_wrong():
    with pytest.raises(TypeError, match="ToyEmbedder is no LangChain embedding object: it has no embed_query"):
        LangChainEmbedder(ToyEmbedder(), name="acme", fingerprint="2")
    with pytest.raises(ValueError, match="fingerprint must be a text that changes"):
        LangChainEmbedder(Sentences(), name="acme", fingerprint="")
    with pytest.raises(ValueError, match="dimension must be a whole number"):
        LangChainEmbedder(Sentences(), name="acme", fingerprint="2", dimension=0)


ADAPTED = [
    lambda: SentenceTransformerEmbedder(Model5()),
    lambda: LangChainEmbedder(Sentences(), name="acme", fingerprint="2"),
]


@pytest.mark.parametrize("adapted", ADAPTED)
@pytest.mark.parametrize("kind", ["document", "query"])
def test_an_adapted_model_is_not_given_a_blank_text_which_is_refused_by_its_name(adapted, kind):
    """BR-16: the blank one is named, its neighbours are not; neither NUL nor a lone surrogate reaches the model."""
    with pytest.raises(BadVectors, match="found nothing to embed in kc-a:c1 and"):
        embed_in_batches(adapted(), ["a bike", " \0", "a helmet"], ["kc-a:c0", "kc-a:c1", "kc-a:c2"], kind)
    plain, cleaned = embed(adapted(), "a bike ?", "a\0bike \ud800", kind=kind)
    np.testing.assert_array_equal(plain, cleaned)
    assert adapted().embed_documents([]) is not None
    with pytest.raises(BadVectors, match="found nothing to embed in the question and"):
        embed_in_batches(adapted(), [""], ["the question"], "query")


def test_what_an_adapted_model_gives_is_judged_with_the_names_of_the_texts():
    class Wrong(Sentences):
        def embed_documents(self, texts):
            return [[1.0] * 8, [1.0] * 7]

    wrong = LangChainEmbedder(Wrong(), name="acme", fingerprint="2")
    with pytest.raises(BadVectors, match="acme gave a vector of 7 numbers instead of 8 for kc-a:c1"):
        embed_in_batches(wrong, ["a", "b"], ["kc-a:c0", "kc-a:c1"])


# ---------------------------------------------------------------- in a desk


@pytest.mark.parametrize("adapted", ADAPTED)
def test_a_desk_embeds_each_text_once_and_takes_no_other_model_of_the_same_width(adapted, tmp_path):
    """BR-05, BR-77: a copy of a text in another document and a second ingest are not embedded."""
    (tmp_path / "in").mkdir()
    for name in ("loans", "returns"):
        (tmp_path / "in" / f"{name}.md").write_text(f"---\ndoc_id: {name}\ntitle: Rules\n---\n{ENGLISH[0]}\n")
    counted = counting(adapted())
    with Desk.open(tmp_path / "desk.db", embedder=counted) as desk:
        assert desk.ingest(tmp_path / "in").embedded == 1
        assert desk.ingest(tmp_path / "in").embedded == 0
        assert {hit.chunk.doc_id for hit in desk.search("keep a book", mode="vector")} == {"loans-v1", "returns-v1"}
    assert counted.documents == 1
    other = LangChainEmbedder(Sentences(), name="acme", fingerprint="3")
    with pytest.raises(EmbedderMismatch, match="were made by .*, not by acme .8 dimensions, fingerprint 3."):
        Desk.open(tmp_path / "desk.db", embedder=other)


def test_the_adapters_import_neither_library():
    code = "import sys, evidencedesk; print({m.split('.')[0] for m in sys.modules} & {'sentence_transformers', 'torch', 'langchain_core'})"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "set()"


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("limits", "longer"),
    [
        ({}, 0),
        ({"max_chars": 10}, 1),
        ({"max_chars": 9}, 2),
        ({"max_tokens": 3}, 0),
        ({"max_tokens": 2}, 1),
        ({"max_tokens": 2, "max_chars": 9}, 2),
    ],
)
def test_texts_longer_than_the_declared_limit_are_counted_each_word_being_one_token_at_least(limits, longer):
    texts = ["a b", "1234567890", "a blue bike"]
    assert longer_than_limit(host(list, **limits), texts) == longer
    assert longer_than_limit(counting(host(list, **limits)), texts) == longer


def test_a_model_with_a_tokenizer_counts_its_tokens_and_its_prompt():
    class Letters:
        def encode(self, text):
            return list(text)

    model = Model5(document="d: ")
    assert SentenceTransformerEmbedder(model).max_tokens == 6
    assert longer_than_limit(SentenceTransformerEmbedder(model), ["a b c d e", "a b c d e f", "abcd"]) == 1
    model.tokenizer = Letters()
    assert longer_than_limit(SentenceTransformerEmbedder(model), ["a", "abc", "abcd"]) == 1
    model.max_seq_length = float("inf")  # as models without a limit say
    assert longer_than_limit(SentenceTransformerEmbedder(model), ["abcd" * 1000]) == 0


def test_every_adapter_takes_a_limit_and_a_wrong_one_is_a_value_error():
    limited = (
        E5Embedder(),
        OpenAIEmbedder("m", dimension=2, max_chars=8000),
        LangChainEmbedder(Sentences(), name="acme", fingerprint="2", max_chars=8000),
    )
    assert [longer_than_limit(embedder, ["a" * 8000, "a" * 8001]) for embedder in limited] == [1, 1, 1]
    assert longer_than_limit(ToyEmbedder(), ["a" * 8001]) == 0
    with pytest.raises(ValueError, match=r"CallableEmbedder\.max_tokens must be a whole number"):
        longer_than_limit(host(list, max_tokens=0), [])


def test_an_object_or_function_that_only_needs_an_adapter_is_told_which():
    for thing, adapter in ((Sentences(), "LangChain"), (Model5(), "SentenceTransformer"), (len, "Callable")):
        with pytest.raises(TypeError, match=f"is no embedder: it has no embed_.*; wrap it: {adapter}Embedder"):
            resolve(thing)
