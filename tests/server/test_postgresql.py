"""Servers on one PostgreSQL database: what one does the others know, also after it was killed."""

import signal

import pytest
from waiting import wait_until

from submax.client.client import Client

from .test_serve import Load, check_kept

pytestmark = pytest.mark.needs("postgresql")


@pytest.fixture
def servers(serve, postgres_address):
    return [serve(postgres_address) for _ in range(2)]


def test_two_servers_share_bandits_decisions_versions_and_changes(servers):
    first, second = (Client(one.address, "page") for one in servers)
    with first, second:
        first.create(
            ["A", "B", "C"], refit_rows=50, refit_seconds=0.2, reward_wait=0.0,
            guard_rails={"holdout": 0.2, "baseline": "A"},
        )  # fmt: skip
        made = first.decide_many([{"unit": f"visitor-{number}"} for number in range(200)])
        again = second.decide(id=made[0].id)
        assert (again.repeated, again.action) == (True, made[0].action)
        # Rewards come to the other server than the decisions, and both see the lift of all.
        second.reward_many([{"id": one.id, "value": float(one.action == "C")} for one in made])
        assert second.reward(made[0].id, float(made[0].action == "C")).repeated
        wait_until(lambda: second.show()["version"] > 0 and first.show()["version"] > 0)
        (lift,) = first.lift()
        assert lift == second.lift()[0]
        assert lift.decisions + lift.decisions_of_group == 200
        # A change by one is in force at the other within a second.
        second.add("D")
        wait_until(lambda: "D" in {one["choice"] for one in first.show()["arms"]})
        assert first.erase("visitor-7") == 1
        assert second.show()["counts"]["decisions"] == first.show()["counts"]["decisions"]


def test_a_key_that_one_server_makes_is_needed_by_the_other(servers):
    with Client(servers[0].address, "page") as first:
        key = first.add_key(["admin"])["key"]
    wait_until(lambda: servers[1].get("/bandits").status_code == 401)
    header = {"authorization": f"Bearer {key}"}
    wait_until(lambda: servers[1].get("/bandits", headers=header).status_code == 200)


def test_killing_one_of_two_servers_loses_nothing_and_the_other_goes_on(servers, postgres_address):
    addresses = [one.address for one in servers]
    with Client(addresses, "page") as client:
        client.create(["A", "B", "C"], refit_rows=50, refit_seconds=0.2, reward_wait=0.0)
        loads = [Load(one, attempts=1) for one in servers]
        for load in loads:
            load.wait_for(100)
        servers[0].signal(signal.SIGKILL)
        loads[1].wait_for(100)
        for load in loads:
            load.end()
        assert loads[0].errors
        assert not loads[1].errors
        for load in loads:
            check_kept(postgres_address, load)
        # The lock of the process that fitted versions is free again: the other one fits.
        version = client.show()["version"]
        made = client.decide_many([{}] * 100)
        client.reward_many([{"id": one.id, "value": 1.0} for one in made])
        wait_until(lambda: client.show()["version"] > version)
