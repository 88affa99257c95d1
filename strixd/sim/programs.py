"""Plain programs in unit files, so far as tests use them: true, false, sleep N, echo WORDS, sh -c "exit N", and a
shell that kills itself."""

from __future__ import annotations

import re
import shlex

from strixd.sim.units import Run


class Plain:
    """A service of type simple, or oneshot (which is never active); its commands run one after the other."""

    patience = 0.0

    def __init__(self, text: str) -> None:
        found = re.findall(r"^Exec(?:Start)?=(.*)$", text, re.M)
        self._commands = [shlex.split(command) for command in found]
        self.warm_up = -1.0 if re.search(r"^Type=oneshot", text, re.M) else 0.0

    def started(self, run: Run) -> None:
        self._next(run, 0)

    def ended(self) -> None:
        pass

    def _next(self, run: Run, number: int) -> None:
        if number == len(self._commands):
            run.exit(0)
            return
        path, *arguments = self._commands[number]
        program = path.rpartition("/")[2]
        if program == "echo":
            run.log(" ".join(arguments))
        seconds = float(arguments[0]) if program == "sleep" else 0.01
        run.after(seconds, lambda: self._over(run, number, "1" if program == "false" else " ".join(arguments[1:])))

    def _over(self, run: Run, number: int, script: str) -> None:
        status = re.search(r"^(?:exit )?(\d+)$", script)
        if "kill -KILL" in script:
            run.killed(9)
        elif status:
            run.exit(int(status.group(1)))
        else:
            self._next(run, number + 1)
