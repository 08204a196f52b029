"""Embedders."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from recallstack.errors import InputError
from recallstack.ranking import embedders as embed
from recallstack.ranking.embedders import register_embedder, resolve_embedder
from recallstack.ranking.embedders.hash3 import Hash3, words
from recallstack.ranking.embedders.lsa import LSA

TEXTS = [
    f"note {i}: the {a} {b} is kept in box {i * 7 % 13}"
    for i in range(9)
    for a in ["red", "blue"]
    for b in ("key", "map")
]


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "_REGISTERED", {})


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a @ b.T) / np.linalg.norm(a, axis=1)[:, None] / np.linalg.norm(b, axis=1)


@pytest.mark.parametrize("name", ["lsaa", "x", "", "sentence-transformers:"])
def test_unknown_name(name: str) -> None:
    with pytest.raises(InputError, match="unknown embedder"):
        resolve_embedder(name)
    with pytest.raises(InputError, match="did you mean 'lsa'"):
        resolve_embedder("lsaa")


@pytest.mark.parametrize("name", ["", "lsa", "hash3", "sentence-transformers:x"])
def test_built_in_names_cannot_be_taken(name: str) -> None:
    with pytest.raises(InputError, match="empty or built in"):
        register_embedder(name, lambda texts: [[1.0] for _ in texts])


def test_registered_objects_and_callables() -> None:
    hashed = Hash3()
    register_embedder("object", hashed)
    register_embedder("function", lambda texts: [[len(text)] for text in texts])
    assert resolve_embedder("object") is hashed
    function = resolve_embedder("function")
    assert isinstance(function, embed.Embedder)
    assert function.encode_queries(["ab", ""]).tolist() == [[2.0], [0.0]]
    assert resolve_embedder("lsa") is resolve_embedder("lsa")


def test_hash3_words_and_values() -> None:
    assert words("Red-fox, it's 3.5_x 红狐狸在这里，你好。") == [
        "red",
        "fox",
        "it",
        "s",
        "3",
        "5",
        "x",
        "红狐狸在这里",
        "你好",
    ]
    one, two, both, none = Hash3().encode_documents(["Red", "fox", "fox red", " ,。"])
    digest = hashlib.blake2b(b"red", digest_size=6).digest()
    by_hand = [int.from_bytes(digest[i : i + 2], "little") / 32767.5 - 1 for i in (0, 2, 4)]
    np.testing.assert_allclose(one, by_hand, rtol=0, atol=1e-15)
    np.testing.assert_allclose(both, one + two, rtol=0, atol=1e-15)
    assert not none.any()


def test_lsa_of_few_texts_is_their_tfidf_cosine() -> None:
    """With all directions kept, cosines between texts of the corpus are those of the plain TF-IDF vectors."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    fitted = LSA().fit(TEXTS)
    vectors = fitted.encode_documents(TEXTS)
    plain = TfidfVectorizer(analyzer="char", ngram_range=(2, 4), sublinear_tf=True)
    rows = plain.fit_transform(TEXTS)
    np.testing.assert_allclose(cosines(vectors, vectors), (rows @ rows.T).toarray(), atol=1e-9)


def test_both_decompositions_give_the_same_cosines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recallstack.ranking.embedders.lsa.DIMENSIONS", 8)
    queries = ["the red key", "box 12"]

    def all_cosines() -> np.ndarray:
        fitted = LSA().fit(TEXTS)
        return cosines(fitted.encode_queries(queries), fitted.encode_documents(TEXTS))

    few = all_cosines()
    monkeypatch.setattr("recallstack.ranking.embedders.lsa.GRAM_LIMIT", 10)
    np.testing.assert_allclose(all_cosines(), few, atol=1e-8)


def test_lsa_has_at_most_256_dimensions() -> None:
    texts = [f"{hashlib.md5(str(i).encode()).hexdigest()}" for i in range(300)]
    fitted = LSA().fit(texts)
    assert fitted.encode_documents(texts).shape == (300, 256)
    alone = np.concatenate([fitted.encode_queries([text]) for text in texts[:5]])
    assert np.array_equal(alone, fitted.encode_queries(texts[:5]))


@pytest.mark.parametrize("texts", [[], [""], ["", "  \n"]])
def test_lsa_of_nothing(texts: list[str]) -> None:
    fitted = LSA().fit(texts)
    assert fitted.encode_documents(texts).shape == (len(texts), 0)
    assert fitted.encode_queries(["a"]).shape == (1, 0)


@pytest.mark.parametrize("text", ["a", "红", "İ"])
def test_lsa_of_a_lone_character(text: str) -> None:
    fitted = LSA().fit([text])
    assert cosines(fitted.encode_queries([text]), fitted.encode_documents([text])) == pytest.approx(1)


SCRIPT = """
import hashlib
import numpy as np
from recallstack.ranking.channels import retrieve
from recallstack.ranking.rows import Corpus, Memory
from recallstack.ranking.specs import VectorSpec
draw = np.random.default_rng(0)
words = ["".join(chr(97 + c) for c in draw.integers(0, 26, draw.integers(3, 9))) for _ in range(400)]
texts = [" ".join(words[i] for i in draw.integers(0, 400, 12)) for _ in range(500)]
corpus = Corpus.of("c", [Memory(id=str(i), content=t) for i, t in enumerate(texts)])
for name in ("lsa", "hash3"):
    got = retrieve(corpus, texts[:40] + words[:40], VectorSpec(name), 50).candidates
    print(hashlib.sha256(got.ids.tobytes()).hexdigest(), hashlib.sha256(got.scores.tobytes()).hexdigest())
"""


def test_the_same_in_every_process_and_with_any_number_of_threads() -> None:
    outputs = set()
    for threads, seed in (("1", "1"), ("2", "2")):
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "PYTHONHASHSEED": seed,
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
        }
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        outputs.add(run.stdout)
    assert len(outputs) == 1


def test_missing_sentence_transformers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    embedder = embed._built_in.__wrapped__("sentence-transformers:some/model")
    with pytest.raises(InputError, match=r'pip install "recallbench\[st\]"'):
        embedder.encode_queries(["a"])


def test_sentence_transformers_gets_whole_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a stand-in of the library: what is handed over, and what becomes of its answers."""
    import types

    handed: list[list[str]] = []

    class Model:
        def __init__(self, path: str) -> None:
            if path == "broken":
                raise OSError("no such model\nmore")

        def encode(self, texts: list[str], *, convert_to_numpy: bool, show_progress_bar: bool) -> np.ndarray:
            handed.append(texts)
            return np.ones((len(texts), 2), np.float32)

    monkeypatch.setitem(sys.modules, "sentence_transformers", types.SimpleNamespace(SentenceTransformer=Model))
    long = "x" * 100_000
    got = embed._built_in.__wrapped__("sentence-transformers:m").encode_queries([long, "a\ud800"])
    assert got.dtype == np.float64
    assert handed == [[long, "a\ufffd"]]
    with pytest.raises(InputError, match="cannot load the model 'broken': no such model;"):
        embed._built_in.__wrapped__("sentence-transformers:broken").encode_queries(["a"])
