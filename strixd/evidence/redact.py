"""What may not be kept: prompts, generated text, tokens and keys. Pure.

Lines of vLLM 0.32 about requests are left out whole (vllm/entrypoints/serve/utils/request_logger.py and
middleware/log_response.py), with all that follows under the same head: its formatter repeats "LEVEL MM-DD HH:MM:SS
[FILE:LINE]" before every line of a message. Where text may hide in another line, the rest of that line goes. Too much
is masked rather than too little.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

MASK: Final = "[masked]"
SHORTEST = 6
"""Characters that a key must have to be looked for literally: a shorter one would be found in every line."""
READ = 1 << 16
"""Characters of a line that are looked at; the rest is dropped."""
LONGEST = 2000
"""Characters of a line that are kept."""
UNEXPLAINED = 4000
"""A line without a head that is longer than this may be the rest of one that journald broke (LineMax=)."""

_HEAD = re.compile(r"\b(DEBUG|INFO|WARNING|ERROR|CRITICAL)(?: \d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \[[^\]]+\]|:\s)")
_WHO = re.compile(r"^\S+ (\S+?): ")
"""The journal's identifier, as sources.journal writes it."""
_REQUEST = re.compile(
    r"Received request |Generated response |Request \S+ details:|JSON body:|response_body=|Input prompt:"
    r"|request_logger\b|log_response\b|(?:prompt|output|new|all|prefill)_token_ids(?!_len)"
    r"""|["']levelname["']: ["']DEBUG"""
)
_TEXT = re.compile(
    r"(\b(?:prompts?|messages|input_value|generated_text|delta_text|current_text|model_output|tool_calls?)\\*[\"']?"
    r"\s*[:=](?!\s*\d+%)|"
    r"\b(?:content|text|inputs?|outputs?|output_text|delta|completion|body|stop|bad_words|choice|grammar|regex|arguments"
    r"|mm_features|structured_outputs|sampling_params)\\*[\"']?\s*[:=]\s*\\*(?=[\"'\[{(<]|b[\"']|[A-Z]\w*\()"
    r"|\bSamplingParams\()\s*\S.*",
    re.S,
)
_QUOTED = re.compile(r"""(?<!\w)(["'])(?:(?!\1).){80,}(?:\1|$)""")
"""Long quoted text is seldom of use and often somebody's."""
_VALUE = r"""(?:\[[^\]]*\]?|"[^"]*"?|'[^']*'?|(?:Bearer|Basic)\s+\S+|[^\s,;)}\]]+)"""
_NAMED = re.compile(
    r"(?<![A-Za-z])((?:[A-Z0-9_]*(?:KEY|TOKEN(?!IZ|S\b)|SECRET|PASSW|CREDENTIAL)[A-Z0-9_]*"
    r"|(?i:(?:[a-z0-9]+[_-])*(?:api[_-]?key|key|token|secret|password|passwd|passphrase|authorization)))\\*[\"']?\s*[:=]\s*\\*)"
    + _VALUE
)
_OPTION = re.compile(r"(--[\w-]*(?:key|token|secret|password)[= ]+)(?!--)\S.*?(?=\s--|$)")
_SHAPED = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{8,}|sk-[\w-]{8,}|gh[pousr]_\w{20,}|eyJ[\w-]{10,}\.[\w-]+(?:\.[\w-]+)?)"
    r"|(?i:\b(?:Bearer|Basic)\s+)[\w.~+/=-]{6,}|(?<=://)[^\s/@:]+:[^\s/@]+(?=@)"
)
_ASSIGNED = re.compile(
    r"(?:^|[\s\"'\0])[A-Z0-9_]*(?:KEY|TOKEN(?!IZ|S\b)|SECRET|PASSW|CREDENTIAL)[A-Z0-9_]*=([^\"'\s\0]+)"
)


def assigned(text: str) -> frozenset[str]:
    """The values of variables whose names say that they are secret: of a unit's file, or of an environment. Paths are
    no secret."""
    return frozenset(value for value in _ASSIGNED.findall(text) if not value.startswith("/etc/"))


class Redaction:
    """`secrets`: values that are looked for literally."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = sorted({each for each in secrets if len(each) >= SHORTEST}, key=len, reverse=True)
        self._literal = re.compile("|".join(map(re.escape, known)) or r"(?!)")

    def lines(self, lines: Iterable[str]) -> Iterator[str]:
        """Lines of text, without those about requests; a line tells how many they were."""
        left_out, dropped = 0, ""
        for line in lines:
            dropped = _dropped(line[:READ], dropped)
            if dropped:
                left_out += 1
                continue
            if left_out:
                yield _told(left_out)
            left_out = 0
            yield self.text(line)
        if left_out:
            yield _told(left_out)

    def text(self, line: str) -> str:
        """One line."""
        line = self._literal.sub(MASK, line[:READ])
        line = _SHAPED.sub(MASK, line)
        line = _OPTION.sub(rf"\1{MASK}", line)
        line = _NAMED.sub(rf"\1{MASK}", line)
        line = _QUOTED.sub(rf"\1{MASK}\1", _TEXT.sub(rf"\1 {MASK}", line))
        return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"

    def value(self, tree: object) -> object:
        """A JSON value: every text in it, and all that stands under a telling name."""
        if isinstance(tree, dict):
            return {self.text(str(key)): self._under(str(key), value) for key, value in tree.items()}
        if isinstance(tree, list):
            return [self.value(item) for item in tree]
        return self.text(tree) if isinstance(tree, str) else tree

    def _under(self, key: str, value: object) -> object:
        said = f"{key}={value}"
        return MASK if isinstance(value, str) and _NAMED.match(said) else self.value(value)


def _dropped(line: str, before: str) -> str:
    """By what a line is left out, "" when it is kept. `before`: the same of the line before it. A line of
    the journal without a head that follows one may belong to it."""
    found, who = _HEAD.search(line), _WHO.match(line)
    head = found.group() if found else ""
    origin = who.group(1) if who else ""
    mark = f"{origin} {head}" if head else f"{origin} "
    if _REQUEST.search(line) or head.startswith("DEBUG ") or (not head and len(line) > UNEXPLAINED):
        return mark
    goes_on = origin and before.startswith(f"{origin} ") and (not head or mark == before)
    return before if goes_on else ""


def _told(count: int) -> str:
    return f"[{count} lines that may tell of requests: left out]"
