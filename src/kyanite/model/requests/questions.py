"""Asking every process of every node why a request was refused. Only one of them knows, and only in its memory.

A question is a row and a notification. Each process looks into its memory and writes an answer: an explanation, or an
empty row, which says that it does not know. The asker reads the answers and deletes the rows. So nobody but the asker
pays: a process that is not asked has a subscription and nothing else, and no row is there.

Rows that are left behind, because the asker has died, are deleted by the next one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import msgspec

from kyanite.engine.api import Engine, EngineClosed, EngineError, Snapshot, Transaction
from kyanite.membership.api import OWNER_BYTES
from kyanite.model import keys
from kyanite.model.records import Record, encode
from kyanite.model.requests.refusals import Explanation, Refusals
from kyanite.values import Instant, later

TOPIC = b"questions"
ANSWER_SECONDS = 5.0
"""How long an asker waits for processes that do not answer."""
_AGAIN_SECONDS = 0.25
"""After this time a question is asked again, since notifications may be lost."""
_EXPIRES_SECONDS = 60.0
_OPEN_MAX = 100
_ANSWERS_MAX = 500
_FORGOTTEN_MAX = 2
"""Of questions that were left behind, in one transaction."""
_REFUSED_SECONDS = 1.0
"""How long a process waits before it looks again, if the engine has failed."""

_log = logging.getLogger("kyanite.questions")


class Question(Record, frozen=True):
    request_id: str
    account: str | None
    """Only refusals of this account are meant; None for any."""
    asker: bytes
    """The process that asks, and so does not answer."""
    expires_at: Instant


decode_question: Callable[[bytes], Question] = msgspec.msgpack.Decoder(Question).decode
decode_explanation: Callable[[bytes], Explanation] = msgspec.msgpack.Decoder(Explanation).decode


class Questions:
    """Answers the questions of other processes, and asks them."""

    def __init__(
        self, engine: Engine, owner: bytes, refusals: Refusals, processes: Callable[[], Awaitable[int]]
    ) -> None:
        """``owner`` is the id of this process. ``processes`` counts those that answer, this one included."""
        self._engine = engine
        self._owner = owner
        self._refusals = refusals
        self._processes = processes

    async def explain(self, request_id: str, account: str | None = None) -> Explanation | None:
        """Why a request was refused; None if no process knows. With an account, only if it was a request for that."""
        request_id = request_id.strip().lower()
        own = self._explain(request_id, account)
        others = await self._processes() - 1
        if own is not None or others < 1:
            return own
        question = await self._engine.run(
            partial(_put_question, request_id=request_id, account=account, asker=self._owner), durable=False
        )
        notifications = self._engine.subscribe(_topic_of(question))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                while True:
                    found = await self._engine.read(partial(_answers, question_id=question))
                    known = next(filter(None, found), b"")
                    if known or len(found) >= others:
                        return decode_explanation(known) if known else None
                    try:
                        await asyncio.wait_for(anext(notifications), _AGAIN_SECONDS)
                    except TimeoutError:
                        others = await self._processes() - 1  # One may have ended.
                        await self._engine.run(lambda tx: tx.notify(TOPIC), durable=False)
        except (TimeoutError, StopAsyncIteration):
            return None
        finally:
            with suppress(EngineError):
                await self._engine.run(partial(_forget, question_id=question), durable=False)

    async def follow(self) -> None:
        """Answer what others ask, until the engine is closed."""
        notifications = self._engine.subscribe(TOPIC)
        answered: set[int] = set()
        while True:
            try:
                await anext(notifications)
                open_questions = await self._engine.read(partial(_unanswered, owner=self._owner))
                answered &= open_questions.keys()
                for question_id, question in open_questions.items():
                    if question_id not in answered:
                        await self._answer(question_id, question)
                        answered.add(question_id)
            except (StopAsyncIteration, EngineClosed):
                return
            except EngineError as error:
                _log.warning("a question cannot be answered", extra={"why": str(error)})
                await asyncio.sleep(_REFUSED_SECONDS)
            except Exception:
                _log.exception("a question cannot be answered")
                await asyncio.sleep(_REFUSED_SECONDS)

    async def _answer(self, question_id: int, question: Question) -> None:
        known = self._explain(question.request_id, question.account)
        value = b"" if known is None else msgspec.msgpack.encode(known)
        await self._engine.run(
            partial(_put_answer, question_id=question_id, owner=self._owner, value=value), durable=False
        )

    def _explain(self, request_id: str, account: str | None) -> Explanation | None:
        refusal = self._refusals.find(request_id, account)
        if refusal is None:
            return None
        # Most processes are never asked, so they do without all the sentences.
        from kyanite.model.requests.explanations import explain

        return explain(refusal)


def _topic_of(question_id: int) -> bytes:
    return b"answers %d" % question_id


def _put_question(tx: Transaction, request_id: str, account: str | None, asker: bytes) -> int:
    for key, value in list(tx.scan(keys.QUESTIONS, keys.after(keys.QUESTIONS), limit=_FORGOTTEN_MAX)):
        if decode_question(value).expires_at <= tx.now:
            _forget(tx, keys.number_at_end(key))
    question_id = tx.new_id()
    tx.put(
        keys.question(question_id),
        encode(Question(request_id, account, asker, later(tx.now, _EXPIRES_SECONDS))),
    )
    tx.notify(TOPIC)
    return question_id


def _unanswered(snap: Snapshot, owner: bytes) -> dict[int, Question]:
    """The questions of others to which a process has not replied."""
    rows = snap.scan(keys.QUESTIONS, keys.after(keys.QUESTIONS), limit=_OPEN_MAX)
    open_questions = {keys.number_at_end(key): decode_question(value) for key, value in rows}
    replies = snap.get_many([keys.answer(question_id, owner) for question_id in open_questions])
    return {
        question_id: question
        for (question_id, question), reply in zip(open_questions.items(), replies, strict=True)
        if reply is None and question.asker != owner and snap.now < question.expires_at
    }


def _put_answer(tx: Transaction, question_id: int, owner: bytes, value: bytes) -> None:
    if tx.get(keys.question(question_id)) is not None:
        tx.put(keys.answer(question_id, owner), value)
        tx.notify(_topic_of(question_id))


def _answers(snap: Snapshot, question_id: int) -> list[bytes]:
    start = keys.answers(question_id)
    return [value for _, value in snap.scan(start, keys.after(start), limit=_ANSWERS_MAX)]


def _forget(tx: Transaction, question_id: int) -> None:
    tx.delete(keys.question(question_id))
    start = keys.answers(question_id)
    for key, _ in list(tx.scan(start, keys.after(start), limit=_ANSWERS_MAX)):
        tx.delete(key)


def check_row(key: bytes, value: bytes) -> bool:
    """Whether a row of a question or an answer is as it should be."""
    if key.startswith(keys.QUESTIONS):
        decode_question(value)
        return len(key) == len(keys.question(0))
    if value:
        decode_explanation(value)
    return len(key) == len(keys.answer(0, bytes(OWNER_BYTES)))
