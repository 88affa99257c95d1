"""Which of two links has the fabric's address: the first one, or its spare while the first has no carrier. Pure.

Nodes tell each other nothing of this: both ends of a cable lose the carrier together, and each node goes by what it
sees itself. Moving back ends what runs, so it waits for an apply, or until the cluster is not together anyway: that is
how the other node follows. A boot forgets the move, since our profile for the spare is never on disk.
"""

from __future__ import annotations

from dataclasses import dataclass

from strixd.elapsed import elapsed, later
from strixd.fabric import Pick
from strixd.ladder import COST
from strixd.ports import Card, Link, Profile
from strixd.resources.network_steps import staged

GRACE = 5.0
"""Seconds: what lasts less is a flap, which Ray and TCP outlive."""
APART = 20.0
"""Seconds for which the cluster must not have been together: a restart of Ray takes less."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two links, and its hardware, None where it is not there."""

    pick: Pick
    card: Card | None = None

    @property
    def carrier(self) -> bool:
        return self.pick.link is not None and self.pick.link.carrier

    @property
    def up(self) -> bool:
        """The hardware, which was read a moment earlier or later, says the same: then it says since when, too."""
        return self.carrier and self.card is not None and self.card.carrier is True

    def fit(self, now: float) -> bool:
        return self.up and self.card is not None and elapsed(self.card.since, now) >= GRACE

    def gone(self, now: float) -> bool:
        """What is not known to be without carrier is not gone."""
        if self.pick.link is None or self.card is None:
            return True
        down = self.card.carrier is False and not self.carrier
        return down and elapsed(self.card.since, now) >= GRACE

    @property
    def lacks(self) -> str:
        """In words."""
        return f"no carrier on {self.pick.link.name}" if self.pick.link else self.pick.why


@dataclass(frozen=True, slots=True)
class Seen:
    """`moved`: the spare has the address, or is to have it. `asked`: when the last apply came; `apart`: since when the
    cluster has not been together, 0 while it is; `now`: seconds since the epoch, as they are."""

    first: Side
    spare: Side
    moved: bool = False
    asked: float = 0.0
    apart: float = 0.0
    now: float = 0.0


@dataclass(frozen=True, slots=True)
class Choice:
    """`why`: another link is taken than before; `soon`: why one will be, if it stays so for GRACE."""

    pick: Pick
    why: str = ""
    soon: str = ""


def moved(profile: Profile | None, spare: Link | None) -> bool:
    """Whether our profile is for the spare. On disk it may be so by an earlier cluster.toml, which is no move."""
    return profile is not None and staged(profile) and spare is not None and profile.mac == spare.mac


def choose(seen: Seen) -> Choice:
    first, spare = seen.first, seen.spare
    if seen.moved:
        return _from_the_spare(seen)
    if spare.pick.link is None or first.carrier or not spare.up:
        return Choice(first.pick)
    name = spare.pick.link.name
    if first.gone(seen.now) and spare.fit(seen.now):
        return Choice(spare.pick, why=f"{first.lacks}; goes on over {name}{_cost(first, spare)}")
    return Choice(first.pick, soon=f"{first.lacks}; when it stays so for {GRACE:.0f} s, {name} is taken")


def _from_the_spare(seen: Seen) -> Choice:
    first, spare = seen.first, seen.spare
    if not first.up or first.card is None:
        return Choice(spare.pick)
    again = f"{first.card.interface} has its carrier again"
    if later(seen.asked, first.card.since, seen.now):
        return Choice(first.pick, why=f"{again}, and an apply takes it")
    if why := _free(seen):
        fit = first.fit(seen.now)
        soon = f"{again}: it is taken when that lasts {GRACE:.0f} s"
        return Choice(first.pick, why=f"{again}; {why}") if fit else Choice(spare.pick, soon=soon)
    return Choice(spare.pick)


def _free(seen: Seen) -> str:
    """Why a move ends nothing, "" when it would."""
    if seen.spare.gone(seen.now):
        return seen.spare.lacks
    apart = bool(seen.apart) and elapsed(seen.apart, seen.now) >= APART
    return "the cluster is not together over the spare" if apart else ""


def _cost(first: Side, spare: Side) -> str:
    """Where the first link had RDMA and the spare has none."""
    had, has = (bool(side.card and side.card.ports) for side in (first, spare))
    return f", TCP, {COST}" if had and not has else ""
