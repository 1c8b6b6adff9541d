"""Why a request was refused, in plain words: a pure function of what was kept of it.

``rules_in_words.py`` has a sentence for each reason, ``facts_in_words.py`` says what was asked and what was stored. No
explanation has a key, a signature, a token or the id of another client's lease in it.
"""

from collections.abc import Mapping

from kyanite.model.requests.facts_in_words import sentences_of_detail, sentences_of_facts, string_to_sign_in
from kyanite.model.requests.refusals import Explanation, Refusal
from kyanite.model.requests.rules_in_words import OF_SOURCE, RULES, SERVER_FAILED
from kyanite.model.requests.secrets import cut_query, cut_secrets, cut_string_to_sign
from kyanite.values import iso_text

_URL_CHARACTERS_MAX = 2_000


def explain(refusal: Refusal) -> Explanation:
    url = f"{refusal.path}?{cut_query(refusal.query)}" if refusal.query else refusal.path
    return Explanation(
        refusal.request_id,
        iso_text(refusal.at),
        refusal.account,
        refusal.service,
        refusal.operation,
        refusal.method,
        cut_secrets(url[:_URL_CHARACTERS_MAX]),
        refusal.client,
        cut_secrets(refusal.user_agent),
        cut_secrets(refusal.client_request_id),
        refusal.status,
        refusal.code,
        "" if refusal.reason is None else refusal.reason.name,
        tuple(map(cut_secrets, _sentences(refusal))),
        cut_string_to_sign(string_to_sign_in(refusal.facts)),
    )


def _sentences(refusal: Refusal) -> list[str]:
    of_source = [OF_SOURCE] if refusal.is_of_source else []
    if refusal.reason is not None:
        rule = RULES[refusal.reason]
        return [*of_source, rule, *sentences_of_facts(refusal.facts), *sentences_of_detail(refusal)]
    if isinstance(refusal.detail, Mapping):
        return [*of_source, *sentences_of_detail(refusal), *sentences_of_facts(refusal.facts)]
    return [SERVER_FAILED]
