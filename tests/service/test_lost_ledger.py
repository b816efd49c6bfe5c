"""A ledger that is lost, old, or another's: said plainly, with a way to go on."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from placewire.model.errors import Unusable
from placewire.model.settings import Settings
from placewire.serve.gateway import GatewayOptions
from placewire.serve.ledger import LEDGER_FILE
from placewire.serve.offline import OfflineReader, OfflineWriter
from placewire.serve.processes import check_exposure
from placewire.storage.layout import StateDir
from placewire.storage.manifest import committed_batches
from service import Events, Service, serving

COFFEE = {"kind": "boolean", "where": "coffee"}


def thing(name: str) -> dict[str, object]:
    return {"id": name, "lon": 1.0, "lat": 2.0, "text": "coffee"}


def publish(service: Service, *names: str) -> None:
    """Each in a batch of its own."""
    for name in names:
        service.publish(thing(name))
        service.caught_up()


def swept(root: Path) -> None:
    """A state that has had results, and has swept the first batches."""
    with serving(root) as service:
        service.subscribe("s", **COFFEE)
        service.caught_up()
        publish(service, "o1", "o2")
        with closing(sqlite3.connect(root / LEDGER_FILE)) as database:
            database.execute("VACUUM INTO ?", (str(root.with_suffix(".old")),))
        publish(service, "o3", "o4", "o5", "o6")
        state = StateDir(root)
        service.until(lambda: publish(service, "more") or committed_batches(state)[0] > 3)


def lose(root: Path) -> None:
    for path in root.glob(f"{LEDGER_FILE}*"):
        path.unlink()


def test_a_lost_ledger_is_refused_and_begins_again_if_asked(tmp_path: Path) -> None:
    root = tmp_path / "state"
    swept(root)
    lose(root)
    with pytest.raises(Unusable, match=r"up to batch -1.*keeps those from batch.*--renew-ledger"):
        Service(root).start_gateway()
    with pytest.raises(Unusable, match="--renew-ledger"):
        OfflineWriter(root)
    with serving(root, renew_ledger=True) as service:
        assert service.gateway is not None
        assert "restarts with batch" in service.gateway.renewed
        shown = service.http.get("/v1/subscriptions/s").json()
        assert (shown["owner"], shown["status"]) == ("local", "live")
        service.caught_up()
        before = [one["number"] for one in service.results("s")]
        # Whoever has read up to the last number misses nothing that comes.
        listening = Events(service, "/v1/subscriptions/s/events?after=6")
        publish(service, "new")
        told = [listening.next()["data"] for _ in range(len(before) + 1)]
        assert told[-1]["result"]["object"] == "new"
        assert min(one["number"] for one in told) > 6
        listening.close()
    # It is well from now on.
    with serving(root) as service:
        assert service.gateway is not None
        assert service.gateway.renewed == ""
        publish(service, "newer")
        numbers = [one["number"] for one in service.results("s")]
        assert numbers == [*range(numbers[0], numbers[0] + len(numbers))]


def test_a_lost_ledger_is_noticed_before_anything_is_swept(tmp_path: Path) -> None:
    """Its keys and webhooks are nowhere else, whatever can be made again."""
    root = tmp_path / "state"
    with serving(root) as service:
        service.subscribe("s", **COFFEE)
        publish(service, "o1", "o2")
    lose(root)
    for make in (False, True):
        with pytest.raises(Unusable, match=r"is missing.*keys and webhooks.*--renew-ledger"):
            OfflineReader(root, make=make)
    with pytest.raises(Unusable, match="--renew-ledger"):
        OfflineWriter(root)
    assert not (root / LEDGER_FILE).exists()
    for _ in range(2):  # what a start that was refused has left is no ledger of the state's
        with pytest.raises(Unusable, match=r"is missing.*--renew-ledger"):
            Service(root).start_gateway()
    with serving(root, renew_ledger=True) as service:
        assert service.gateway is not None
        assert "keys and webhooks" in service.gateway.renewed
        service.caught_up()
        service.until(lambda: len(service.results("s")) == 2)
    with serving(root) as service:
        assert service.gateway is not None
        assert service.gateway.renewed == ""
        publish(service, "o3")
        service.until(lambda: len(service.results("s")) == 3)


def test_a_service_for_others_says_that_its_ledger_is_lost(tmp_path: Path) -> None:
    root = tmp_path / "state"
    with closing(OfflineReader(root, make=True)) as reader:
        reader.add_key("ann", ["admin"])
    lose(root)
    options = GatewayOptions(root, Settings(), "0.0.0.0", require_keys=True)
    with pytest.raises(Unusable, match="--renew-ledger"):
        check_exposure(options)
    with pytest.raises(Unusable, match=r"renew it with --host 127\.0\.0\.1"):
        check_exposure(options._replace(renew_ledger=True))


def test_keys_of_a_state_that_was_never_served_are_not_lost_silently(tmp_path: Path) -> None:
    root = tmp_path / "state"
    with closing(OfflineReader(root, make=True)) as reader:
        reader.add_key("ann", ["publish"])
    with closing(OfflineReader(root, make=True)) as reader:
        assert reader.keys() == [{"name": "ann", "roles": ["publish"]}]
    lose(root)
    with pytest.raises(Unusable, match="--renew-ledger"):
        Service(root).start_gateway()


def test_an_old_copy_goes_on_above_what_was_numbered(tmp_path: Path) -> None:
    root = tmp_path / "state"
    swept(root)
    lose(root)
    shutil.copy(root.with_suffix(".old"), root / LEDGER_FILE)
    with pytest.raises(Unusable, match=r"up to batch 2.*keeps those from batch"):
        Service(root).start_gateway()
    with serving(root, renew_ledger=True) as service:
        publish(service, "new")
        objects = {one["result"]["object"]: one["number"] for one in service.results("s")}
        assert (objects["o1"], objects["o2"]) == (1, 2)
        assert objects["new"] > 6
        assert len(set(objects.values())) == len(objects)


def test_the_ledger_of_another_state_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path / "one") as service:
        service.subscribe("s", **COFFEE)
        service.caught_up()
    ledger = str(tmp_path / "one" / LEDGER_FILE)
    with pytest.raises(Unusable, match="belongs to another state"):
        Service(tmp_path / "two", ledger=ledger, renew_ledger=True).start_gateway()


@pytest.mark.parametrize(
    ("change", "said"),
    [(True, r"knows events up to \d+.*older copy"), (False, r"up to batch \d+.*--renew-ledger")],
)
def test_a_ledger_that_is_ahead_of_its_state_is_refused(
    tmp_path: Path, change: bool, said: str
) -> None:
    root, copy = tmp_path / "state", tmp_path / "copy"
    with serving(root) as service:
        service.subscribe("s", **COFFEE)
        publish(service, "o1")
    shutil.copytree(root, copy)
    with serving(root) as service:
        publish(service, "o2", "o3")
        if change:
            service.subscribe("t", **COFFEE)
    lose(copy)
    shutil.copy(root / LEDGER_FILE, copy / LEDGER_FILE)
    with pytest.raises(Unusable, match=said):
        Service(copy).start_gateway()
