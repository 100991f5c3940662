"""The one redactor: text for people and for logs → the same text without credentials.

It takes the value of a credential, all of it, and nothing beside it. What it finds are the forms in which a
credential appears in requests, URLs, connection strings, headers, JSON and libraries' messages; a secret that has no
such form is found only if it is named in ``secrets``.

Not guaranteed: a short secret in plain prose, without any mark beside it, cannot be told from a word.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from azguard.cli.options.common import SECRET_ROWS
from azguard.cli.parsing import command_line

STARS = "***"
#: A secret shorter than this would tear up the words around it.
_SHORTEST = 12

_HARMLESS = str.maketrans("", "", "-_./@")

# What ends a value wherever it stands, in prose, in a URL, in a connection string, in JSON.
_PLAIN = r"(?!%26|%2526|%3B|%253B)[^\s&;'\"`(),<>\\{}\[\]|]"
# A full stop or colon behind a value belongs to the sentence.
_VALUE = rf"(?:{_PLAIN})+?(?=[.:!?]*(?:(?!{_PLAIN})|$))"
_EQUALS = r"(?:=|%3D|%253D)"
# An escaped quote is one inside JSON inside JSON.
_QUOTE = r"\\*[\"']"
_NAMES = (
    "account_?key|shared_?access_?key|account-key|sas_?token|sas-token|"
    "(?:x-ms-)?(?:source[_-])?encryption[_-]key|client_secret|client_assertion|access_token|refresh_token|id_token"
)
_BEGINS = r"(?:(?<![a-z0-9_])|(?<=%26)|(?<=%3F)|(?<=%2526)|(?<=%253F)|(?<=%3B))"
_TOKEN = r"[A-Za-z0-9._~+/%*=-]*[A-Za-z0-9_~+/%*=-]"  # noqa: S105  # what one looks like
_SCHEMES = "Bearer|Basic|Digest|Negotiate|NTLM|SharedKeyLite|SharedKey|SharedAccessSignature"
_BASE64 = r"(?:[A-Za-z0-9+/]|%2B|%2F)"
# 64 bytes in base64.
_KEY = rf"{_BASE64}{{86}}(?:==|%3D%3D)"


def _rule(pattern: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    return re.compile(pattern, flags)


@cache
def _rules() -> tuple[re.Pattern[str], ...]:
    """Return the patterns, in their order; each replaces what is behind its first group, which stays.

    They are compiled late, because that takes milliseconds and most runs have nothing to redact.
    """
    return (
        # user:password@ in a URL, a proxy's for example.
        _rule(r"(://[^\s/?#@:'\"]*:)[^\s/?#@'\"]+(?=@)"),
        # JSON and the repr of a dict: "AccountKey": "…", 'Authorization': 'Basic …'.
        _rule(rf"({_QUOTE}(?:[\w-]*authorization|sig|{_NAMES}|connection_?string){_QUOTE}\s*:\s*{_QUOTE})[^\"'\\\n]+"),
        # A header on a line of its own, of any scheme.
        _rule(r"^([ \t>*]*[\w-]*authorization:[ \t]*)[^\s'\"][^\n]*$", re.IGNORECASE | re.MULTILINE),
        # A header in a sentence: its scheme and one word, or its one word.
        _rule(rf"((?:authorization|x-ms-(?:source-)?encryption-key)\s*[:=]\s*)(?:(?:{_SCHEMES})\s+)?[^\s'\",;()\\]+"),
        # A scheme without its header. A word of prose, as in "Basic authentication", is no token.
        _rule(r"(\bSharedKey(?:Lite)?\s+)[^\s:'\"]+:[A-Za-z0-9+/%*=]+"),
        _rule(
            rf"(\b(?:Bearer|Basic)\s+)(?![\w-]+=[\"'h])"
            rf"(?=(?:\S*[0-9]|[^\s=]+=|\S[a-z]*[A-Z]|[^\s.,;:]{{25}})){_TOKEN}",
            0,
        ),
        _rule(rf"(\bbearer\s+)(?![\w-]+=[\"'h])(?=\S*[0-9])\S{{8,}}{_TOKEN}"),
        # Until the next part of the connection string: the value is itself full of & and =.
        _rule(rf"({_BEGINS}sharedaccesssignature{_EQUALS})(?:(?!%3B)[^\s;'\"`(),<>\\])+"),
        _rule(rf"({_BEGINS}(?:{_NAMES}|sig){_EQUALS}{_QUOTE}){_VALUE}"),
        _rule(rf"({_BEGINS}(?:{_NAMES}|sig){_EQUALS}){_VALUE}"),
        # What can be nothing else: 64 bytes in base64, and a JSON Web Token.
        _rule(rf"()(?<![A-Za-z0-9+/%]){_KEY}"),
        _rule(r"()\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*", 0),
    )


# The names by which other tools take a secret, as an option or as a variable, and what stands between it and its value.
# It begins where a word does, so that a long one is not tried from each of its letters.
_SECRET_WORDS = "password|passwd|passphrase|pwd|token|secret|key|credential"  # noqa: S105  # names, no value
_SECRET_NAME = rf"(?<![\w.-])(?=[\w.-]*(?:{_SECRET_WORDS}))[\w.-]++"
_QUOTED = r"\"[^\"]*\"|'[^']*'"
_SECRET_OPTION = rf"(?=-){_SECRET_NAME}"
_SECRET_ASSIGNED = rf"(?s)(\W{{0,2}}{_SECRET_NAME}=).+"
_SECRET_IN_TEXT = rf"({_SECRET_NAME}[\"']?\s*(?:=|:(?!//))\s*|{_SECRET_OPTION}\s+)(?:{_QUOTED}|[^\s;&|]+)"
_INSIDE = rf"(?i)(?:account_?key|sig|shared_?access_?key)=({_VALUE})"
_VARIABLES = (
    *(row.variable for row in SECRET_ROWS if row.variable),
    *("AZURE_CLIENT_SECRET", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "SYSTEM_ACCESSTOKEN"),
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text without the given secrets, longest first, and without what looks like a credential."""
    for secret in secrets:
        text = text.replace(secret, STARS)
    # Each pattern needs a blank, a colon, an equals sign, a percent sign, or the beginning of a token.
    if text.translate(_HARMLESS).isalnum() and "eyJ" not in text:
        return text
    for rule in _rules():
        text = rule.sub(rf"\g<1>{STARS}", text)
    return text


def mask_arguments(words: Iterable[str]) -> list[str]:
    """Return the words of another tool's command line without the values that are named like a secret.

    Masked are what follows such an option or variable, as a word of its own or behind ``=``, also in a script that is
    one word, and ``NAME: value``.

    Not guaranteed: a secret whose name does not tell, such as that of ``-p`` or ``-u user:password``, stays.
    """
    option, assigned, in_text = map(_rule, (_SECRET_OPTION, _SECRET_ASSIGNED, _SECRET_IN_TEXT))
    masked: list[str] = []
    is_value = False
    for word in words:
        if is_value and not word.startswith("--"):
            is_value = False
            masked.append(STARS)
            continue
        is_value = option.fullmatch(word) is not None
        whole = assigned.fullmatch(word)
        masked.append(f"{whole[1]}{STARS}" if whole else in_text.sub(rf"\g<1>{STARS}", word))
    return masked


def redact_values(value: Any, secrets: Iterable[str] = ()) -> Any:
    """Return a JSON value whose texts are redact each by itself, so that it stays the JSON it was."""
    if isinstance(value, str):
        return redact(value, secrets)
    if isinstance(value, Mapping):
        return {key: redact_values(each, secrets) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact_values(each, secrets) for each in value]
    return value


def find_secrets(shared: Mapping[str, Any], environ: Mapping[str, str], argv: Iterable[str] = ()) -> list[str]:
    """Return the secrets that were given to this run, in each spelling they may come back in, longest first.

    ``argv`` counts where the command line could not be read to its end, so that ``shared`` is empty.
    """
    typed = (shared.get(row.name) for row in SECRET_ROWS)
    given = [str(value) for value in (*typed, *map(environ.get, _VARIABLES)) if value]
    words = list(argv)
    given += command_line.find_values(words, [row.flags[0] for row in SECRET_ROWS])
    inside = [found for text in (*given, *words) for found in re.findall(_INSIDE, text)]
    # A key in the place of an address is read as names with slashes between them, and one of them may be told.
    inside += [piece for text in words for key in re.findall(_KEY, text) for piece in (key, *key.split("/"))]
    # A value that begins with @ names a file.
    found = [each.strip() for each in (*given, *inside) if not each.startswith("@")]
    every = {spelling for each in found for spelling in _spellings(each)}
    return sorted((each for each in every if len(each) >= _SHORTEST), key=len, reverse=True)


def _spellings(secret: str) -> tuple[str, ...]:
    from urllib.parse import quote, unquote

    # A variable, or a word, may hold bytes that are not UTF-8.
    return secret, quote(secret, safe="", errors="surrogateescape"), unquote(secret)
