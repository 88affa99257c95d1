"""Whether an order to serve makes sense at all. The one place where that is asked; whether vLLM likes it, vLLM says.

The name becomes a path below the model folder and a word of a start command, so neither may be led astray by it.
"""

from __future__ import annotations

from typing import Final

from strixd.config.checks import vllm_argument
from strixd.errors import Refused

_MOST_ARGUMENTS: Final = 256
_LONGEST_ARGUMENT: Final = 4096  # letters


def check(model: str, arguments: tuple[str, ...]) -> None:
    """Raises Refused."""
    if not _is_name(model):
        raise Refused(f"Cannot serve {model!r}: that is no model's name", hint="strixd-cli serve Qwen/Qwen3-0.6B")
    if len(arguments) > _MOST_ARGUMENTS or any(len(each) > _LONGEST_ARGUMENT for each in (model, *arguments)):
        raise Refused(f"Cannot serve: more than {_MOST_ARGUMENTS} arguments, or one over {_LONGEST_ARGUMENT} letters")
    for argument in arguments:
        if not argument.isprintable():
            raise Refused(f"Cannot serve {model}: the argument {argument!r} has characters that do not print")
        if problem := argument and vllm_argument(argument):
            hint = "strixd-cli config show    tells what is set; sudoedit /etc/strixd/cluster.toml && strixd-cli apply"
            raise Refused(f"Cannot serve {model}: the argument {problem}", hint=hint)


def _is_name(model: str) -> bool:
    """A folder below the model folder, or NAMESPACE/NAME of the hub: no way up, none from the root."""
    if model.startswith(("-", ".")) or not model.isprintable() or any(map(str.isspace, model)):
        return False
    return not {"", ".", ".."} & set(model.split("/"))
