"""One suite for every kind of membership: what ``membership/api.py`` promises, as tests.

A kind joins by a class that derives from ``MembershipSuite`` and a fixture ``join`` that adds a member to one store.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from kyanite.membership.api import OWNER_BYTES, Membership

Join = Callable[[], Membership]


class MembershipSuite:
    def test_every_member_has_an_id_of_its_own(self, join: Join) -> None:
        members = [join() for _ in range(50)]
        assert {len(member.id) for member in members} == {OWNER_BYTES}
        assert len({member.id for member in members}) == 50

    def test_a_member_is_alive_to_all_until_it_leaves(self, join: Join) -> None:
        first, second = join(), join()
        assert first.is_alive(first.id)
        assert second.is_alive(first.id)
        first.close()
        assert not second.is_alive(first.id)
        assert second.is_alive(second.id)

    def test_an_id_that_never_joined_is_not_alive(self, join: Join) -> None:
        member = join()
        assert not member.is_alive(bytes(OWNER_BYTES))
        assert member.dead_owners() == []

    def test_the_dead_are_listed_until_they_are_forgotten(self, join: Join) -> None:
        leaving, other, staying = join(), join(), join()
        assert staying.dead_owners() == []
        leaving.close()
        other.close()
        assert set(staying.dead_owners()) == {leaving.id, other.id}
        staying.forget(leaving.id)
        assert staying.dead_owners() == [other.id]
        assert not staying.is_alive(leaving.id)
        staying.forget(leaving.id)
        assert join().dead_owners() == [other.id]

    def test_the_oldest_of_the_dead_comes_first(self, join: Join) -> None:
        members = [join() for _ in range(20)]
        staying = join()
        for member in reversed(members):
            member.close()
        dead = staying.dead_owners()
        assert dead == sorted(dead)
        assert set(dead) == {member.id for member in members}

    def test_the_dead_stay_dead_when_others_join(self, join: Join) -> None:
        leaving = join()
        leaving.close()
        for _ in range(5):
            assert not join().is_alive(leaving.id)

    def test_any_thread_may_look_up_a_member(self, join: Join) -> None:
        leaving, staying = join(), join()
        leaving.close()
        with ThreadPoolExecutor(8) as threads:
            alive = list(threads.map(staying.is_alive, [leaving.id, staying.id] * 200))
        assert alive == [False, True] * 200
        assert staying.is_alive(staying.id)
