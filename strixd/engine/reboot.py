"""Whether this host may be rebooted now, for kernel arguments that wait for it; and the line for those who log in.

The decision is pure. An attempt is on disk before login1 is asked, so that no crash makes a third of two. What a person
orders always comes first: nothing is rebooted that answers, nor while strixd is paused or changes something.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from strixd import messages
from strixd.elapsed import elapsed
from strixd.engine.memory import Saving
from strixd.engine.status import ResourceView
from strixd.engine.wish import Wish
from strixd.errors import StrixdError
from strixd.ports import Host
from strixd.resources import cmdline, leftovers, ray, reboots, vllm

log = logging.getLogger("strixd")

MOTD = "/run/motd.d/50-strixd"
SERVED = "/run/strixd/served"
"""The run of the model that has answered, by its invocation: a restarted daemon must not take it for one that loads."""
LINE = "strixd: kernel arguments take effect with the next reboot (strixd-cli status says which)\n"
PATIENCE = 300.0
"""Seconds that a reboot may take to begin, once login1 has taken the order: services may end slowly."""
AGAIN = 60.0
"""Seconds until login1 is asked again when it said no."""
SETTINGS = ("cmdline", "firewall", "network")


@dataclass(frozen=True, slots=True)
class Verdict:
    """`words`: for the status, in any case."""

    go: bool = False
    words: str = ""


def verdict(views: Mapping[str, ResourceView], *, paused: bool, serving: str, asked: float, now: float) -> Verdict:
    """For a host whose arguments wait for a reboot that the file allows. `serving`: what answers here, "" for nothing;
    `asked`: when login1 was last told, in this boot."""
    moving = [name for name in SETTINGS if name in views and views[name].steps]
    if paused:
        return Verdict(words="no reboot by itself: paused")
    if moving:
        return Verdict(words=f"reboots by itself when nothing is being changed ({', '.join(moving)})")
    if serving:
        return Verdict(words=f"reboots by itself when no model is being served; waits: {serving}")
    if elapsed(asked, now) < PATIENCE:
        return Verdict(words="a reboot has been asked of login1; systemctl list-jobs shows what it waits for")
    return Verdict(True, "reboots by itself now")


class Reboots:
    """What is done at the end of a pass."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._went = 0.0
        self._saving = {path: Saving() for path in (reboots.RECORD, MOTD, SERVED)}

    async def after_pass(
        self, wish: Wish, views: Mapping[str, ResourceView], seen: Mapping[str, object]
    ) -> Mapping[str, ResourceView]:
        """The views with more to say, by name."""
        view, observed = views.get("cmdline"), seen.get("cmdline")
        if view is None or not isinstance(observed, cmdline.Observed):
            return {}
        await self._motd(LINE if view.condition == "reboot" else None)
        if view.condition in ("ok", "ineffective") and observed.attempts:
            await self._record(())
        if view.condition != "reboot" or wish.file.config.kernel.reboot != "auto":
            return {}
        words = await self._reboot(wish, views, seen, observed)
        return {view.name: replace(view, facts=(*view.facts, words))}

    async def _reboot(
        self, wish: Wish, views: Mapping[str, ResourceView], seen: Mapping[str, object], observed: cmdline.Observed
    ) -> str:
        now = self._host.now()
        serving = await self._serving(wish, seen)
        asked = max((one.at for one in observed.attempts if one.boot == observed.boot_id), default=0.0)
        found = verdict(views, paused=wish.orders.paused, serving=serving, asked=asked, now=now)
        if found.go and elapsed(self._went, now) >= AGAIN:
            self._went = now
            await self._go(wish, observed)
        return found.words

    async def _serving(self, wish: Wish, seen: Mapping[str, object]) -> str:
        """What answers here, in words; "" when nothing does, or when it is only being loaded."""
        if wish.file.node.role != "head":
            return await self._ranks()
        server = seen.get("vllm")
        if not isinstance(server, vllm.Observed) or server.unit.active != "active":
            return ""
        answer, run = server.answer, server.unit.invocation
        known = await self._read(SERVED) == run
        if answer.at and not known:
            await self._write(SERVED, run)
        if not (answer.at or answer.failed_at or known):
            return "not looked at the model yet"
        return f"{wish.orders.served or 'a model'} answers" if answer.at or known else ""

    async def _ranks(self) -> str:
        """A worker knows the processes of its Ray container: ranks that are loading count too."""
        try:
            titles = await self._host.units.programs(f"{ray.NAME}.service")
        except StrixdError as failure:
            return f"not known: {failure}"
        return "a rank of a model runs here" if any(map(leftovers.is_rank, titles)) else ""

    async def _go(self, wish: Wish, observed: cmdline.Observed) -> None:
        """Earlier attempts for other arguments no longer count. This one comes after the newest apply, whatever a clock
        that was set back says: each counts."""
        now, boot = max(self._host.now(), wish.orders.applied), observed.boot_id
        arguments = next(cmdline.asked(desired) for resource, desired in wish.wanted() if resource.name == "cmdline")
        earlier = tuple(one for one in observed.attempts if (one.arguments == arguments and one.boot != boot))
        if not await self._record((*earlier, reboots.Attempt(arguments, boot, now))):
            return
        extra = messages.fields("REBOOTING", resource="cmdline")
        log.warning("Rebooting this host: kernel arguments wait for it, and no model is being served", extra=extra)
        try:
            await self._host.power.reboot()
        except StrixdError as failure:
            log.warning("%s; next try in %.0f s", failure, AGAIN, extra=messages.fields("CONDITION", code=failure.code))
            await self._record(observed.attempts)

    async def _record(self, attempts: tuple[reboots.Attempt, ...]) -> bool:
        return await self._write(reboots.RECORD, reboots.written(attempts) if attempts else None)

    async def _motd(self, text: str | None) -> None:
        """Shown by pam_motd at log-in. Seen, not remembered: somebody may remove it, and each boot does."""
        if text != await self._read(MOTD):
            await self._write(MOTD, text)

    async def _read(self, path: str) -> str | None:
        """What cannot be read is as good as not there: writing it says what is wrong."""
        with suppress(StrixdError):
            return await self._host.files.read(path)
        return None

    async def _write(self, path: str, text: str | None) -> bool:
        """Whether it could be written."""
        files = self._host.files
        return await self._saving[path](files.remove(path) if text is None else files.write(path, text))
