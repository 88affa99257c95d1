"""`strixd-media build`: gather, write, read again, and only then give the medium its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from strixd.config import ConfigFile
from strixd.errors import Refused
from strixd.media import archive, contents, fat, fedora, iso, repodata, rpms, tools, verify, whole
from strixd.media.contents import Item
from strixd.media.progress import Progress, sized
from strixd.media.supply import COMPLETE, Supply, supply

LABEL: Final = "OEMDRV"
"""Anaconda takes /ks.cfg from a volume of this name when nothing names another kickstart."""
_ANYBODY, _OWNER = 0o644, 0o600


@dataclass(frozen=True, slots=True)
class Order:
    """What was asked for; `kickstart` is the text of ks.cfg."""

    file: ConfigFile
    kickstart: str
    out: Path
    iso: Path | None = None
    rpms: Path | None = None
    image: Path | None = None
    model: Path | None = None
    key: Path | None = None

    @property
    def is_fat(self) -> bool:
        return self.out.suffix == ".img"


def build(order: Order, progress: Progress) -> Supply:
    """Raises StrixdError; whatever happens, `out` is then as it was, and nothing lies beside it."""
    tools.need(_programs(order))
    _sensible(order)
    with whole.draft(order.out) as work:
        items = tuple(_items(order, work))
        found = _supply(order, work)
        if found.complete:
            items = (*items, _written(work, COMPLETE, f"{found.words}\n"))
        made = work / f"medium{order.out.suffix}"
        wanted = _write(order, items, made, progress)
        _verify(order, made, wanted, progress)
        whole.settle(made, order.out, _OWNER if order.key else _ANYBODY)
    progress.step(f"{order.out} is ready: {sized(order.out.stat().st_size)}")
    return found


def _programs(order: Order) -> Iterator[str]:
    yield "ksvalidator"
    if order.rpms:
        yield "createrepo_c"
    yield from ("mkfs.vfat", "mmd", "mcopy", "mlabel") if order.is_fat else ("xorriso",)
    yield from ("mcopy", "mtype", "implantisomd5", "checkisomd5") if order.iso else ()


def _sensible(order: Order) -> None:
    """What can be said before anything is read or written."""
    if order.out.suffix not in (".iso", ".img"):
        raise Refused(f"{order.out}: the name says what is made: NAME.iso an ISO image, NAME.img a FAT volume")
    if order.iso:
        if order.is_fat:
            raise Refused(
                f"{order.out}: a Fedora image stays an ISO image", hint=f"--out {order.out.with_suffix('.iso')}"
            )
        fedora.layout(order.iso)
    if not order.rpms and not order.file.config.install.repository:
        raise Refused(
            "there is nowhere to install strixd from: neither --rpms nor [install] repository is given",
            hint="make rpm builds them: --rpms DIR",
        )


def _items(order: Order, work: Path) -> Iterator[Item]:
    """Everything but the sums."""
    yield _written(work, "ks.cfg", order.kickstart)
    yield _written(work, "strixd/cluster.toml", order.file.text)
    if order.rpms:
        yield from rpms.repository(order.rpms, work / "repo")
    if order.model:
        yield from contents.model(order.model)
    if order.image:
        yield archive.image(order.image, order.file.config.image.reference)
    if order.key:
        yield contents.key(order.key)


def _supply(order: Order, work: Path) -> Supply:
    own = repodata.packages(work / "repo") if order.rpms else ()
    dvd = fedora.packages(order.iso, work / "dvd") if order.iso else ()
    return supply(order.file.config.install.repository, own, dvd)


def _written(work: Path, place: str, text: str) -> Item:
    file = work / place.rpartition("/")[2]
    file.write_text(text)
    return contents.item(place, file)


def _write(order: Order, items: tuple[Item, ...], made: Path, progress: Progress) -> dict[str, str]:
    """The hashes of everything that is on the medium then."""
    if order.is_fat:
        fat.fits(items)
    verify.kickstart(made.parent / "ks.cfg")
    size = sum(each.size for each in items)
    full = _full(order, items, size)
    whole.room(made.parent, full)
    progress.step(f"reading {len(items)} files", size)
    found = contents.hashed(items, progress.more)
    sums = _written(made.parent, contents.SUMS, contents.sums(found))
    progress.step(f"writing {order.out.name}", full)
    growing = tools.Growing(made, full, progress.at)
    if order.iso:
        fedora.make(order.iso, made, (*items, sums), growing)
    elif order.is_fat:
        fat.make(made, LABEL, (*items, sums), progress.more)
    else:
        iso.make(made, LABEL, (*items, sums), growing)
    return found | contents.hashed((sums,), lambda _count: None)


def _full(order: Order, items: tuple[Item, ...], size: int) -> int:
    """Bytes of the medium, about."""
    if order.is_fat:
        return fat.needed(items)
    return size + len(items) * iso.SECTOR + (order.iso.stat().st_size if order.iso else 0)


def _verify(order: Order, made: Path, wanted: dict[str, str], progress: Progress) -> None:
    progress.step(f"reading {order.out.name} again", made.stat().st_size)
    label = iso.label(order.iso) if order.iso else LABEL
    volume = verify.fat_volume if order.is_fat else verify.iso_volume
    volume(made, label, wanted, progress.more)
    if order.iso:
        verify.bootable(made, made.parent)
