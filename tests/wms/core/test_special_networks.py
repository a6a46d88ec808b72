"""The table of special networks, held against the registries of the IANA."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.core.special_networks import Address, effective_address, is_special

#: The IANA's special-purpose registries of IPv4 and IPv6, all their entries, as of 2026.
REGISTRY = [
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8", "0.0.0.0/32", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32",
        "192.0.0.10/32", "192.0.0.170/32", "192.0.0.171/32", "192.0.2.0/24", "192.31.196.0/24",
        "192.52.193.0/24", "192.88.99.0/24", "192.88.99.2/32", "192.168.0.0/16", "192.175.48.0/24",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "255.255.255.255/32",
        "::1/128", "::/128", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64",
        "100:0:0:1::/64", "2001::/23", "2001::/32", "2001:1::1/128", "2001:1::2/128",
        "2001:1::3/128", "2001:2::/48", "2001:3::/32", "2001:4:112::/48", "2001:10::/28",
        "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48",
        "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10",
    )
]  # fmt: skip
#: Of other registries: multicast, site local, the 6bone, and the host of machines in one cloud.
BESIDE = [
    ipaddress.ip_network(text)
    for text in ("224.0.0.0/4", "ff00::/8", "fec0::/10", "3ffe::/16", "168.63.129.16/32")
]
CARRIERS = ("::ffff:0:0/96", "64:ff9b::/96")
WORLD = ipaddress.ip_network("2000::/3")


@pytest.mark.parametrize("network", [*REGISTRY, *BESIDE], ids=str)
def test_the_first_and_the_last_address_of_each_entry_are_special(
    network: ipaddress.IPv4Network | ipaddress.IPv6Network,
) -> None:
    assert is_special(network[0])
    assert is_special(network[-1])


@given(st.ip_addresses())
def test_an_address_is_special_where_a_registry_says_so_and_nowhere_else(address: Address) -> None:
    is_listed = any(address in network for network in (*REGISTRY, *BESIDE))
    is_outside = address.version == 6 and address not in WORLD

    assert is_special(address) == (is_listed or is_outside)


@given(st.data())
def test_a_part_of_an_entry_is_as_special_as_all_of_it(data: st.DataObject) -> None:
    network = data.draw(st.sampled_from([*REGISTRY, *BESIDE]))

    assert is_special(data.draw(st.ip_addresses(network=network)))


@given(st.ip_addresses(v=4), st.sampled_from(CARRIERS))
def test_an_address_of_ipv4_is_meant_by_what_carries_it(
    address: ipaddress.IPv4Address, carrier: str
) -> None:
    carried = ipaddress.IPv6Address(int(ipaddress.IPv6Network(carrier)[0]) | int(address))

    assert effective_address(carried) == address
