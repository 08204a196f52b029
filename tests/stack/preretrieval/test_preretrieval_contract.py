"""Contract v0.2: what is sent, what is read, and one clear line for whatever else comes."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallstack.errors import InputError
from recallstack.systems.preretrieval.contract import (
    ContextEntry,
    Hit,
    RetrieverError,
    SearchRequest,
    SearchResponse,
    check_response,
    decode_request,
    decode_response,
    encode,
)
from recallstack.systems.preretrieval.retriever import InProcessRetriever

HIT: dict[str, Any] = {
    "doc_id": "d1",
    "title": "Ports",
    "path": "ops.md",
    "snippet": "5432",
    "score": 0.5,
    "source": "docs",
}


def answer(*hits: Any, **more: Any) -> bytes:
    return json.dumps({"hits": list(hits), **more}).encode()


def scored(score: str) -> bytes:
    """An answer with a score as it is written."""
    return answer({**HIT, "score": "SCORE"}).replace(b'"SCORE"', score.encode())


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | NUMBERS | st.text(), st.lists, max_leaves=5
)
ENTRIES = st.builds(
    ContextEntry, st.sampled_from(["user", "assistant", "tool"]), st.text(min_size=1), st.none() | st.text()
)
REQUESTS = st.builds(
    SearchRequest,
    top_k=st.integers(1, 1000),
    query=st.text().map(lambda text: "q" + text),
    context=st.none() | st.lists(ENTRIES).map(tuple),
    sources=st.none() | st.lists(st.text()).map(tuple),
    scope=st.none() | st.dictionaries(st.text(), JSON),
)
HITS = st.builds(
    Hit, doc_id=st.text(min_size=1), title=st.text(), path=st.text(), snippet=st.text(), score=NUMBERS, source=st.text()
)
RESPONSES = st.builds(
    SearchResponse, hits=st.lists(HITS).map(tuple), truncated=st.booleans(), incremental=st.booleans()
)


@given(REQUESTS)
def test_a_request_survives_the_wire(request_: SearchRequest) -> None:
    assert decode_request(encode(request_)) == request_


@given(RESPONSES)
def test_an_answer_survives_the_wire(response: SearchResponse) -> None:
    assert decode_response(encode(response), 3) == response


def test_a_request_on_the_wire() -> None:
    # Field by field as the contract writes it; what was not set is not sent.
    request = SearchRequest(
        query="ports", context=(ContextEntry("tool", "5432", "grep"), ContextEntry("user", "端口")), top_k=3
    )
    assert json.loads(encode(request)) == {
        "query": "ports",
        "context": [{"role": "tool", "text": "5432", "name": "grep"}, {"role": "user", "text": "端口"}],
        "top_k": 3,
    }
    request = SearchRequest(query="x", top_k=1, sources=("docs",), scope={"team": ["a"]})
    assert json.loads(encode(request)) == {"query": "x", "top_k": 1, "sources": ["docs"], "scope": {"team": ["a"]}}


def test_an_answer_on_the_wire() -> None:
    hit = Hit(doc_id="d1", title="Ports", path="ops.md", snippet="5432", score=0.5, source="docs")
    assert json.loads(encode(SearchResponse(hits=(hit,)))) == {"hits": [HIT]}
    assert json.loads(encode(SearchResponse(hits=(), truncated=True))) == {"hits": [], "truncated": True}
    assert decode_response(answer({**HIT, "score": 1, "extra": [1]}, incremental=True, more=1), 3) == SearchResponse(
        hits=(Hit(doc_id="d1", title="Ports", path="ops.md", snippet="5432", score=1.0, source="docs"),),
        incremental=True,
    )


def test_what_is_asked_is_the_query_or_else_the_conversation() -> None:
    said = (ContextEntry("user", "a"), ContextEntry("tool", " "), ContextEntry("assistant", "b"))
    assert SearchRequest(top_k=1, query="q", context=said).text == "q"
    assert SearchRequest(top_k=1, query=" ", context=said).text == "a\nb"
    assert SearchRequest(top_k=1).text == ""


def test_half_a_character_is_not_sent() -> None:
    with pytest.raises(InputError, match="half a character"):
        encode(SearchRequest(top_k=1, query="\ud83d"))


MALFORMED = {
    "empty": (b"", "an empty body instead of JSON"),
    "blank": (b" \r\n", "an empty body instead of JSON"),
    "html": (b"\n <!doctype html><title>Sign in</title>", "HTML instead of JSON; is the address the search endpoint?"),
    "text": (b"OK", "a body that is not valid JSON"),
    "cut off": (answer(HIT)[:-2], "a body that is not valid JSON"),
    "not utf-8": (answer(HIT).replace(b"Ports", b"\xff"), "a body that is not valid JSON"),
    "half a character": (answer({**HIT, "title": "\ud83d"}), "a body that is not valid JSON"),
    "deep": (b'{"hits": [], "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "JSON that is nested too deeply"),
    "a list": (b"[]", "Expected `object`, got `array`"),
    "no hits": (b"{}", "missing required field `hits`"),
    "hits null": (b'{"hits": null}', "hits: Expected `array`, got `null`"),
    "hit without id": (
        answer({k: v for k, v in HIT.items() if k != "doc_id"}),
        "hits[0]: Object missing required field",
    ),
    "hit with an empty id": (answer({**HIT, "doc_id": ""}), "hits[0].doc_id: Expected `str` of length >= 1"),
    "id as number": (answer(HIT, {**HIT, "doc_id": 7}), "hits[1].doc_id: Expected `str`, got `int`"),
    "score as string": (answer({**HIT, "score": "0.5"}), "hits[0].score: Expected `float`, got `str`"),
    "score null": (answer({**HIT, "score": None}), "hits[0].score: Expected `float`, got `null`"),
    "score true": (answer({**HIT, "score": True}), "hits[0].score: Expected `float`, got `bool`"),
    "score NaN": (scored("NaN"), "JSON with NaN, which is no JSON number"),
    "score -Infinity": (scored("-Infinity"), "JSON with -Infinity, which is no JSON number"),
    "score beyond float64": (scored("1e999"), "hits[0].score: Number out of range"),
    "truncated as number": (answer(HIT, truncated=1), "truncated: Expected `bool`, got `int`"),
    "200 hits": (answer(*[HIT] * 200), "200 hits for top_k 3; at most 100 are read"),
}


@pytest.mark.parametrize(("body", "line"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_answer_is_one_clear_line(body: bytes, line: str) -> None:
    with pytest.raises(RetrieverError) as caught:
        decode_response(body, 3)
    said = str(caught.value)
    assert caught.value.kind == "malformed"
    assert said.startswith("the knowledge base answered ")
    assert line in said
    assert len(said.splitlines()) == 1
    assert len(said) < 200


def test_html_is_known_by_its_type_too() -> None:
    with pytest.raises(RetrieverError, match="HTML"):
        decode_response(answer(HIT), 3, "Text/HTML; charset=utf-8")
    assert decode_response(answer(HIT), 3, "text/plain").hits[0].doc_id == "d1"


@pytest.mark.parametrize(("top_k", "most"), [(3, 100), (100, 100), (150, 150)])
def test_most_hits_that_are_read(top_k: int, most: int) -> None:
    assert len(decode_response(answer(*[HIT] * most), top_k).hits) == most
    with pytest.raises(RetrieverError, match=f"{most + 1} hits for top_k {top_k}; at most {most}"):
        decode_response(answer(*[HIT] * (most + 1)), top_k)


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_in_process_must_be_finite_too(score: float) -> None:
    good = Hit(doc_id="a", title="", path="", snippet="", score=0.5, source="")
    bad = Hit(doc_id="b", title="", path="", snippet="", score=score, source="")
    with pytest.raises(RetrieverError, match=r"hits\[1\]\.score is .*; it must be a finite number"):
        check_response(SearchResponse(hits=(good, bad)), 3)


BAD_REQUESTS = {
    "empty": (b"", "the request body is empty; send JSON such as"),
    "blank": (b"\n", "the request body is empty"),
    "no JSON": (b"query=ports&top_k=3", "a body that is not valid JSON"),
    "cut off": (b'{"top_k": 3, "query": "x"', "a body that is not valid JSON"),
    "not utf-8": (b'{"top_k": 3, "query": "\xff"}', "a body that is not valid JSON"),
    "deep": (b'{"top_k":3,"query":"x","scope":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}", "nested too deeply"),
    "NaN": (b'{"top_k": NaN, "query": "x"}', "JSON with NaN, which is no JSON number"),
    "a list": (b"[]", "Expected `object`, got `array`"),
    "unknown field": (b'{"top_k": 3, "query": "x", "topk": 3}', "unknown field `topk`"),
    "unknown field below": (b'{"top_k": 3, "context": [{"role": "user", "text": "x", "at": 1}]}', "context[0]: Object"),
    "unknown role": (
        b'{"top_k": 3, "context": [{"role": "system\\n!", "text": "x"}]}',
        "context[0].role: Invalid enum",
    ),
    "no top_k": (b'{"query": "x"}', "missing required field `top_k`"),
    "top_k 0": (b'{"top_k": 0, "query": "x"}', "top_k: Expected `int` >= 1"),
    "top_k 1001": (b'{"top_k": 1001, "query": "x"}', "top_k: Expected `int` <= 1000"),
    "top_k 1.5": (b'{"top_k": 1.5, "query": "x"}', "top_k: Expected `int`, got `float`"),
    "top_k as string": (b'{"top_k": "3", "query": "x"}', "top_k: Expected `int`, got `str`"),
    "top_k true": (b'{"top_k": true, "query": "x"}', "top_k: Expected `int`, got `bool`"),
    "query as number": (b'{"top_k": 3, "query": 7}', "query: Expected `str | null`, got `int`"),
    "nothing asked": (b'{"top_k": 3}', "neither query nor context holds any text"),
    "blank query": (b'{"top_k": 3, "query": " "}', "neither query nor context holds any text"),
    "blank context": (b'{"top_k": 3, "context": [{"role": "user", "text": " "}]}', "neither query nor context"),
    "a long unknown field": (b'{"' + b"x" * 5000 + b'": 3}', "unknown field `xxx"),
}


@pytest.mark.parametrize(("body", "line"), BAD_REQUESTS.values(), ids=BAD_REQUESTS.keys())
def test_a_bad_request_is_one_clear_line(body: bytes, line: str) -> None:
    with pytest.raises(InputError) as caught:
        decode_request(body)
    said = str(caught.value)
    assert line in said
    assert len(said.splitlines()) == 1
    assert len(said) < 300


def test_a_function_as_knowledge_base_is_held_to_the_contract() -> None:
    request = SearchRequest(top_k=3, query="x")
    good = SearchResponse(hits=(Hit(doc_id="d1", title="", path="", snippet="", score=1, source=""),))

    async def later(_: SearchRequest) -> bytes:
        return encode(good)

    async def ask(function: Any) -> SearchResponse:
        return await InProcessRetriever(function).retrieve(request)

    assert asyncio.run(ask(lambda _: good)) == good
    assert asyncio.run(ask(later)) == good
    with pytest.raises(RetrieverError, match="empty body"):
        asyncio.run(ask(lambda _: b""))
    with pytest.raises(RetrieverError, match="200 hits"):
        asyncio.run(ask(lambda _: SearchResponse(hits=good.hits * 200)))
    with pytest.raises(ZeroDivisionError):  # a fault of the function is no fault of a knowledge base
        asyncio.run(ask(lambda _: 1 / 0))
