"""Where a client comes from: the address of its socket, or what a proxy says that we were told to believe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from gamedb.errors import SchemaError

IPV6_PREFIX = 64
"""Bits of an IPv6 address that tell one customer of a provider from another."""


class Proxies:
    """Those whose `X-Forwarded-For` is believed, by address or network (`10.0.0.0/8`)."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._networks: list[IPv4Network | IPv6Network] = []
        for name in names:
            try:
                self._networks.append(ip_network(name.strip()))
            except ValueError:
                text = f"proxy {name!r}: use an address or a network, such as 127.0.0.1, ::1 or 10.0.0.0/8"
                raise SchemaError(text) from None

    def client(self, peer: str, forwarded: Sequence[str]) -> str:
        """The address of the client behind a socket from `peer`, given its `X-Forwarded-For` headers in order.

        Each proxy adds whom it heard; what stands before the last one that is no proxy of ours may be invented.
        """
        found = peer
        for text in reversed([part.strip() for header in forwarded for part in header.split(",")]):
            if not self._are_trusted(found) or _parsed(text) is None:
                break
            found = text
        return found

    def _are_trusted(self, name: str) -> bool:
        address = _parsed(name)
        return address is not None and any(
            address.version == network.version and address in network for network in self._networks
        )


def counted_as(name: str) -> str | None:
    """The name under which the limits of an address count; `None` for this machine, whose proxy would be everybody."""
    address = _parsed(name)
    if address is None or address.is_loopback:
        return None
    if isinstance(address, IPv6Address):
        return str(ip_network((address, IPV6_PREFIX), strict=False))
    return str(address)


def _parsed(name: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(name)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped if mapped is not None else address
