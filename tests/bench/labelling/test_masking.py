"""What is masked, and what is left: written by hand, no value is a real one."""

from __future__ import annotations

import pytest

from recallbench.labelling.masking import Masker
from recallstack.errors import InputError


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("write to ann.lee+x@mail.example.org today", "write to <email-1> today"),
        ("邮箱是bob@example.cn，别外传", "邮箱是<email-1>，别外传"),
        ("打13812345678给我", "打<phone-1>给我"),
        ("call +44 20 7946 0958 or (415) 555-2671.", "call <phone-1> or <phone-2>."),
        ("token ghp_0123456789abcdefghijABCDEFGHIJ012345 leaked", "token <key-1> leaked"),
        ("AKIAIOSFODNN7EXAMPLE", "<key-1>"),
        ("password=hunter2secret, user bob", "password=<key-1>, user bob"),
        ("密码是 s3cretPW。别说", "密码是 <key-1>。别说"),
        ("the digest 0123456789abcdef0123456789abcdef is ours", "the digest <key-1> is ours"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----\nok", "<key-1>\nok"),
        ("see /home/ann/notes/a.md and ~/x.txt", "see <path-1> and <path-2>"),
        (r"open C:\Users\ann\plan.docx now", "open <path-1> now"),
        ("https://user:pa55w0rd@host.example/x", "<key-1>"),
        ("an jürgen@example.de", "an <email-1>"),
        ("用户@例子.公司 收", "<email-1> 收"),
        ("alice＠example.com", "<email-1>"),
        ("ssh deploy@backup and root@10.0.3.7", "ssh <email-1> and <email-2>"),
        ("file:///home/alice/.ssh/id_rsa", "<path-1>"),
        ("scp host:/home/bob/y .", "scp host:<path-1> ."),
        ("cat $HOME/.ssh/k; ls c:/Users/bob/z.txt", "cat <path-1>; ls <path-2>"),
        ("in /workspace/acme/app.py and /Volumes/Backup/alice", "in <path-1> and <path-2>"),
        (r"C:\Users\Alice Smith\Documents\tax 2025.pdf is it", "<path-1> is it"),
        ("口令 hunter2hunter", "口令 <key-1>"),
        ("npm_abcdefghijklmnopqrstuvwxyz0123456789", "<key-1>"),
        ("身份证 110101199003074578，卡 6222021234567890123", "身份证 <number-1>，卡 <number-2>"),
        ("card 4111 1111 1111 1111.", "card <number-1>."),
        ("x" * 3000 + " end", "<key-1> end"),
    ],
)
def test_what_is_masked(text: str, masked: str) -> None:
    assert Masker()(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "发版窗口改到周五 10:30，端口 8080",
        "2025-12-31 v1.2.3, ticket GW-1410, 412 万",
        "retrieval_pipeline_configuration and either/or, 3/4 of it",
        "GET /api/v2/items of https://docs.example.org/a/b",
        "keyword search; the secret santa list",
        "order 20250312 and 1234567890",
        "nDCG@5 and R@20 of axe-core@4.14.1",
        "the long-identifier-of-a-service-v2-beta is fine",
        "密码 忘了怎么办",
        "",
    ],
)
def test_what_is_left(text: str) -> None:
    assert Masker()(text) == text


def test_a_value_has_one_mark_throughout_and_numbers_follow_first_occurrence() -> None:
    mask = Masker()
    assert mask("b@x.org then a@x.org then b@x.org") == "<email-1> then <email-2> then <email-1>"
    assert mask("a@x.org, +1 415 555 2671") == "<email-2>, <phone-1>"
    assert mask("+1 (415) 555-2671") == "<phone-1>"  # the same number, written otherwise
    assert mask.counts == {"email": 2, "phone": 1}


def test_masked_text_is_not_masked_again() -> None:
    mask = Masker()
    once = mask("a@x.org at /home/a/b, password: hunter2secret")
    assert mask(once) == once


def test_patterns_of_the_caller() -> None:
    mask = Masker(also=[r"ACME-\d+", r"customer (\w+)"])
    assert mask("ACME-12 of customer Brill") == "<masked-1> of customer <masked-2>"


def test_a_region_decides_what_a_number_is() -> None:
    assert Masker(regions=["CN"])("010-62345678") == "<phone-1>"
    assert Masker(regions=["US"])("010-62345678") == "010-62345678"


@pytest.mark.parametrize(
    ("regions", "also", "says"),
    [(["XX"], [], "unknown region 'XX'"), (["CN"], ["("], "pattern '(': no regular expression")],
)
def test_bad_settings(regions: list[str], also: list[str], says: str) -> None:
    with pytest.raises(InputError, match="^" + says.replace("(", r"\(")):
        Masker(regions, also)


def test_odd_texts_stay_quick() -> None:
    """Each took over a minute when a pattern began anew at every sign; the test's time limit would end it."""
    mask = Masker()
    for text in ("-" * 40_000, "=" * 40_000, "/home/" * 50_000, "a@" * 50_000, "字" * 50_000):
        assert len(mask(text)) <= len(text)
