"""org.varlink.service: what this service is, and the descriptions of its interfaces. Open to all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Final

from strixd import __version__
from strixd.api.wire import INTERFACE, SERVICE, Fault, Message

INTERFACES: Final = (INTERFACE, SERVICE)


def description(interface: str) -> str:
    """The text of an interface's .varlink file."""
    return files("strixd.api").joinpath(f"{interface}.varlink").read_text("utf-8")


def _info(parameters: Message) -> Message:
    for name in parameters:
        raise Fault("InvalidParameter", parameter=name)
    own = {"vendor": "strixd", "product": "strixd", "version": __version__, "url": ""}
    return {**own, "interfaces": sorted(INTERFACES)}


def _described(parameters: Message) -> Message:
    interface = parameters.get("interface")
    if not isinstance(interface, str) or len(parameters) > 1:
        raise Fault(
            "InvalidParameter", parameter=next((name for name in parameters if name != "interface"), "interface")
        )
    if interface not in INTERFACES:
        raise Fault("InterfaceNotFound", interface=interface)
    return {"description": description(interface)}


METHODS: Final[Mapping[str, Callable[[Message], Message]]] = {
    "GetInfo": _info,
    "GetInterfaceDescription": _described,
}
