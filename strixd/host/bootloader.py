"""grubby and the boot files it edits.

grubby does the entries, one kernel at a time: that leaves rescue entries and the two files of /etc alone. It has
faults (it appends behind `--`, knows no quotes, moves what it sets to the end), so afterwards every place is made to
read exactly as asked. The new files lie complete beside the old ones before any is touched: a full disk changes none.
A file that somebody else is writing is let be until it is whole.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from strixd import kernelargs
from strixd.errors import Rejected, StrixdError, Unavailable
from strixd.host import bootfiles
from strixd.host.files import rejected, sync_folder, write_whole
from strixd.ports import DEFAULT_GRUB, KERNEL_CMDLINE, Boot, BootEntry

log = logging.getLogger(__name__)

ENTRIES = "boot/loader/entries"
RUNNING = "proc/cmdline"
GRUBBY = 30.0
"""Seconds for one run of grubby; it takes less than one."""
STAGED = ".strixd"
QUIET, PATIENCE = 0.2, 2.0
"""Seconds: how long a file must be unchanged to count as written, and how long that is waited for."""
DOING = "change kernel arguments"


@dataclass(frozen=True, slots=True)
class _File:
    """A boot file as it was read. `line` finds the command line in it, `put` gives it another."""

    path: Path
    text: str
    line: Callable[[str], str]
    put: Callable[[str, str], str]

    def write(self, text: str, *, beside: str = "") -> None:
        """With the mode that it has. Raises Rejected, OSError."""
        write_whole(f"{self.path}{beside}", text, mode=self.path.stat().st_mode & 0o7777)


class Grubby:
    """Implements ports.BootLoader. `root`: where the host's files are; `command`: grubby, by name or path."""

    def __init__(self, root: Path = Path("/"), command: str = "grubby") -> None:
        self._root = root
        self._command = command
        self._own: dict[Path, int] = {}  # when (ns) a file got what we wrote

    async def read(self) -> Boot:
        return await asyncio.to_thread(self._read)

    async def change(self, options: Mapping[str, str]) -> None:
        try:
            await self._change(options)
        except OSError as error:
            raise rejected("change", str(error.filename or self._root / ENTRIES), error) from None

    async def _change(self, options: Mapping[str, str]) -> None:
        """Raises Rejected, Unavailable, OSError."""
        tool = self._tool()
        if not tool:
            raise Rejected(f"Cannot {DOING}: no grubby on this host")
        files = await self._quiet_files(options)
        _unstage(files, files)  # what a strixd that was killed here has left beside them
        wanted = {
            place: file.put(file.text, options[place])
            for place, file in files.items()
            if place in options and file.line(file.text) != options[place]
        }
        if not wanted:
            return
        await asyncio.to_thread(_stage, files, wanted)
        try:
            await _tell_all(tool, {place: (files[place], options[place]) for place in wanted})
        except (StrixdError, OSError, asyncio.CancelledError):
            _unstage(files, wanted)
            _put_back(files, {})
            raise
        await asyncio.to_thread(_commit, files, wanted)
        self._own |= {files[place].path: _changed(files[place].path) for place in wanted}

    async def _quiet_files(self, places: Iterable[str]) -> dict[str, _File]:
        deadline = time.monotonic() + PATIENCE
        while True:
            files = await asyncio.to_thread(self._files)
            fresh = [files[place].path for place in places if place in files and self._fresh(files[place].path)]
            if not fresh:
                return files
            if time.monotonic() > deadline:
                raise Rejected(f"Cannot {DOING}: {fresh[0]} is being written all the time")
            await asyncio.sleep(QUIET / 4)

    def _fresh(self, path: Path) -> bool:
        """A time in the future says nothing: the clock was set."""
        at = _changed(path)
        return 0 <= time.time() - at / 1e9 < QUIET and self._own.get(path) != at

    def _tool(self) -> str:
        """The path of grubby, "" when there is none."""
        return shutil.which(self._command, path=f"/usr/sbin:/usr/bin:{os.environ.get('PATH', '')}") or ""

    def _read(self) -> Boot:
        files = self._files()
        lines = {place: file.line(file.text) for place, file in files.items()}
        names = sorted((place for place in lines if not place.startswith("/")), key=bootfiles.newest_first)
        running = _text(self._root / RUNNING)
        return Boot(
            tool="grubby" if self._tool() else "",
            running=(running or "").strip(),
            entries=tuple(BootEntry(name, lines[name], bootfiles.is_rescue(name)) for name in reversed(names)),
            kernel_cmdline=lines.get(KERNEL_CMDLINE),
            default_grub=lines.get(DEFAULT_GRUB),
        )

    def _files(self) -> dict[str, _File]:
        """By place. Raises Rejected."""
        found: dict[str, _File] = {}
        for path in _entries(self._root / ENTRIES):
            if (text := _text(path)) is not None and bootfiles.is_whole(text):
                found[path.stem] = _File(path, text, bootfiles.entry_options, bootfiles.with_entry_options)
        for place, line, put in _ETC:
            path = (self._root / place.lstrip("/")).resolve()
            if (text := _text(path)) is not None:
                found[place] = _File(path, text, line, put)
        return found


async def _tell_all(tool: str, wanted: Mapping[str, tuple[_File, str]]) -> None:
    """Side by side, for a run takes long; but a kernel that has several entries is told of them one after the other,
    because each run edits them all. grubby edits the files of /etc only for all kernels: it is not told of them."""
    kernels: dict[str, list[tuple[_File, str]]] = {}
    for file, options in wanted.values():
        if kernel := bootfiles.entry_kernel(file.text) if file.line is bootfiles.entry_options else "":
            kernels.setdefault(kernel, []).append((file, options))
    runs = (_tell(tool, kernel, lines) for kernel, lines in kernels.items())
    for failure in await asyncio.gather(*runs, return_exceptions=True):
        if failure is not None:
            raise failure


async def _tell(tool: str, kernel: str, lines: list[tuple[_File, str]]) -> None:
    for file, options in lines:
        came, went = kernelargs.difference(file.line(file.text), options)
        asked = [f"--remove-args={' '.join(filter(_plain, went))}"] if any(map(_plain, went)) else []
        asked += [f"--args={' '.join(filter(_plain, came))}"] if any(map(_plain, came)) else []
        if asked:
            await _run(tool, f"--update-kernel={kernel}", *asked)


_ETC = (
    (KERNEL_CMDLINE, bootfiles.kernel_cmdline, bootfiles.with_kernel_cmdline),
    (DEFAULT_GRUB, bootfiles.default_grub, bootfiles.with_default_grub),
)


def _changed(path: Path) -> int:
    """When (ns since the epoch) its content was last written; 0 when it is gone."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _plain(word: str) -> bool:
    """grubby knows no quotes; `--` is not an argument."""
    return '"' not in word and "'" not in word and word != "--"


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".conf")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise Rejected(f"Cannot read {folder}: {error.strerror}") from None


def _text(path: Path) -> str | None:
    """None when there is no such file. Line ends stay as they are."""
    try:
        return path.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Rejected(f"Cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Rejected(f"Cannot read {path}: it is not UTF-8") from None


def _stage(files: Mapping[str, _File], wanted: Mapping[str, str]) -> None:
    try:
        for place, text in wanted.items():
            files[place].write(text, beside=STAGED)
    except (StrixdError, OSError):
        _unstage(files, wanted)
        raise


def _unstage(files: Mapping[str, _File], wanted: Iterable[str]) -> None:
    """As many as can be: what is left is no boot entry. A read-only file system says so also of a name that it does not
    have; whether anything can be written there, staging tells."""
    for place in wanted:
        with suppress(OSError):
            Path(f"{files[place].path}{STAGED}").unlink()


def _put_back(files: Mapping[str, _File], wanted: Mapping[str, str]) -> None:
    """Every file but the wanted ones as it was, should grubby have touched it."""
    for place, file in files.items():
        if place not in wanted and _text(file.path) not in (file.text, None):
            file.write(file.text)


def _commit(files: Mapping[str, _File], wanted: Mapping[str, str]) -> None:
    """An entry whose kernel was removed meanwhile stays away. Raises Rejected, OSError."""
    try:
        for place in wanted:
            path = files[place].path
            if path.exists():
                Path(f"{path}{STAGED}").replace(path)
                sync_folder(path.parent)
    finally:
        _unstage(files, wanted)
    _put_back(files, wanted)


async def _run(*command: str) -> None:
    environment = {**os.environ, "LC_ALL": "C"}
    null, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
    log.debug("%s", " ".join(command))
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=null, stdout=null, stderr=pipe, env=environment, start_new_session=True
        )
    except OSError as error:
        hint = "dnf reinstall grubby bash"
        raise Rejected(f"Cannot {DOING}: {command[0]} cannot be run: {error.strerror}", hint=hint) from None
    try:
        _, said = await asyncio.wait_for(process.communicate(), GRUBBY)
    except TimeoutError:
        raise Unavailable(f"Cannot {DOING}: grubby did not end within {GRUBBY:g} s") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a script: what it runs would go on editing
            await process.wait()
    if process.returncode:
        words = said.decode(errors="replace").strip() or f"grubby ended with status {process.returncode}"
        raise Rejected(f"Cannot {DOING}: {words}")
