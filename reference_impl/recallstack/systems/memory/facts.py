"""Which sentences state a fact: questions without an answer, requests, instructions and to-dos do not.

A few words of English and Chinese, not a model: the second line of defence behind the extractor's prompt, and the
rule that stands in where there is no extractor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_END = re.compile(
    r"(?<=[.!?;])(?=\s)|(?<=[.!?;][\"'”’)])(?=\s)|(?<=[。！？；])(?![”’」』）】])|(?<=[。！？；][”’」』）】])|\n+"
)
_CLOSERS = "\"'”’」』)）】 \t"
_I = re.IGNORECASE

_QUESTION = (
    re.compile(r"[?？]$"),
    re.compile(r"(?:[吗呢么])[。.!！]?$"),
    re.compile(
        r"(?<!没)(?<!没有)什么|为何|(?<!不)怎么|怎样|如何|哪[里儿个些位天种]|(?<![好十])几[点号时个岁次]|多少|"
        r"(?<![很许更好太最众差])多[大久远长高]|是谁|谁[是的会能在]|([是能会要可])不\1|有没有|是否"
    ),
    re.compile(
        r"^(?:and |but |so )?(?:what|when|where|who|whom|whose|which|why|how)(?:'s|'re|\s+(?:is|are|was|were|do|does|"
        r"did|can|could|will|would|should|has|have|had|much|many|long|often|old)\b)",
        _I,
    ),
    re.compile(
        r"^(?:is|are|am|was|were|do|does|did|can|could|will|would|should|shall|may|has|have|had)\s+"
        r"(?:i|you|he|she|it|we|they|there|this|that|these|those|the|my|your|our|his|her|their)\b",
        _I,
    ),
)
_REQUEST = (
    re.compile(r"^(?:please|pls|kindly|can you|could you|would you|will you|help me|let'?s|don'?t forget)\b", _I),
    re.compile(
        r"^(?:to-?do\b|[-*]\s*\[[ x]?\])|^(?:remember|remind me|need|i need|i have|i must|we need|we must) to\b", _I
    ),
    # Not a noun that is written alike: "Check-in is at nine", "Book club is on Fridays".
    re.compile(
        r"^(?:write|translate|summari[sz]e|fix|show|tell|give|list|explain|make|create|find|search|send|remind|add|remove|"
        r"delete|generate|check|book|buy|call|open|run|draft|schedule|use|stop|answer|reply|look|turn|set|never|always|"
        r"do not|don't)\b(?!-|\s+[\w-]+\s+(?:is|are|was|were|has|had)\b)",
        _I,
    ),
    re.compile(
        # Not a word that begins alike: 去年, 别人, 请假, 写作, 把手, 查理.
        r"^(?:请(?![假柬帖])|麻烦|帮我|帮忙|帮(?!派|工|厨)|给我|替我|提醒|别忘|不要忘|待办|记得|"
        r"写(?![作字手])|(?:翻译|总结|解释)(?!是|官|家)|列出|查(?!理|尔斯)|搜(?!狗)|生成|修复|修改|打开|删除|"
        r"告诉|发送|把(?!手|柄|戏)|让我们|去(?![年世]|过|了)|不要|别(?![人的名称墅处针])|以后(?:请|不要|别)|我(?:得|要去|需要去|必须))"
    ),
)
_LEAD = re.compile(
    r"^(?:please\s+)?(?:(?:also\s+)?remember(?:\s+this)?|note|save|keep in mind)(?:\s+that\b|\s*[:,，：])\s*|"
    r"^(?:也|还)?(?:请|麻烦)?(?:你)?(?:帮我|给我)?(?:记住|记下来|记下|记一下|记录一下|保存一下|保存)[，,：:\s]*(?:一下)?[，,：:\s]*",
    _I,
)
_STATES = re.compile(
    r"\b(?:is|are|am|was|were|isn't|aren't|has|have|had|prefer|prefers|like|likes|love|loves|hate|hates|dislike|live|lives|"
    r"work|works|use|uses|own|owns|moved|decided|chose|switched|starts|ends|called|named|will)\b|\w'(?:m|s|re|ve)\b|"
    r"[是叫在有住用搬]|喜欢|讨厌|偏好|习惯|属于|决定|改[为到成]|定[在为]|过敏|不[吃喝要]|每[天周月年]",
    _I,
)
_PREFERS = re.compile(r"\b(?:prefers?|likes?|loves?|hates?|dislikes?|favou?rite)\b|喜欢|讨厌|偏好|习惯|不[吃喝]", _I)
_REFERS_BACK = re.compile(r"^(?:it|that|they|those|this|yes|no)\b|^[它那这]|^[是对不]", _I)


@dataclass(frozen=True, slots=True)
class Fact:
    """text: what was stated. asked: the user asked to keep it. preference: it states a liking."""

    text: str
    asked: bool
    preference: bool


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order."""
    return [one for one in (part.strip() for part in _END.split(text)) if one]


def is_question(sentence: str) -> bool:
    """Whether a sentence asks."""
    bare = sentence.strip().rstrip(_CLOSERS)
    return any(pattern.search(bare) for pattern in _QUESTION)


def is_request(sentence: str) -> bool:
    """Whether a sentence asks for something to be done: a request, an instruction, a to-do."""
    return any(pattern.search(sentence.strip()) for pattern in _REQUEST)


def states_nothing(text: str) -> bool:
    """Whether a text holds only questions and requests: nothing that could be remembered as a fact."""
    return not any(not is_question(one) and not is_request(one) for one in map(_without_lead, sentences(text)))


def facts(text: str, questions_too: bool = False) -> list[Fact]:
    """What a text states. questions_too: the documented fault: whatever has a verb is a fact."""
    out: list[Fact] = []
    question = ""
    for sentence in sentences(text):
        rest = _without_lead(sentence)
        asked = rest != sentence
        if questions_too:
            if rest and (asked or _STATES.search(rest) or is_question(rest)):
                out.append(_fact(rest, asked))
            continue
        if not rest:
            continue
        if is_question(rest):
            question = rest
            continue
        if not is_request(rest):
            states = asked or _STATES.search(rest) is not None
            if question and (not states or _REFERS_BACK.match(rest)):
                out.append(_fact(f"{question} {rest}", asked))
            elif states:
                out.append(_fact(rest, asked))
        question = ""
    return out


def _without_lead(sentence: str) -> str:
    """The sentence without "remember that" and the like."""
    return _LEAD.sub("", sentence, count=1).strip()


def _fact(text: str, asked: bool) -> Fact:
    return Fact(text, asked, _PREFERS.search(text) is not None)
