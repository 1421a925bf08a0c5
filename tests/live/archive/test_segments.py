"""A segment restores every event exactly."""

import hashlib
import os

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import raises_code

from submax.live.archive.segments.archived_segment import ArchivedSegment
from submax.live.archive.segments.segment_reader import SegmentReader
from submax.live.archive.segments.segment_writer import SegmentWriter
from submax.live.declaring.names import new_identifier
from submax.live.declaring.settings import Settings
from submax.live.log.group_draw import GroupDraw
from submax.live.log.records import (
    ACTIVATION,
    DECISION,
    REWARD,
    TICK,
    DecisionMade,
    RewardGiven,
    activation_key,
    decision_key,
    reward_key,
)
from submax.live.store.event import Event

SETTINGS = Settings.of(
    {
        "actions": {"page": ["A", "B", "C"], "price": (0.0, 10.0)},
        "context": {"age": "number", "country": ["de", "fr"]},
    }
)
NUMBERS = st.floats(allow_nan=False)
IDENTIFIERS = st.one_of(
    st.text("abc-019", min_size=1, max_size=4),
    st.uuids().map(str),
    st.uuids().map(str).map(str.upper),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
VALUES = st.one_of(NUMBERS, TEXTS)
GROUPS = st.sampled_from(["bandit", "holdout", "control"])
CHOICES = st.lists(st.integers(0, 2), unique=True, max_size=3).map(tuple)
DECISIONS = st.builds(
    DecisionMade,
    action=st.tuples(st.integers(0, 2**64 - 1), NUMBERS).map(list) | st.lists(NUMBERS, max_size=3),
    propensity=NUMBERS,
    version=st.integers(-(2**63), 2**64 - 1),
    context=st.tuples(NUMBERS, TEXTS).map(list) | st.lists(VALUES, max_size=3),
    eligible=st.lists(CHOICES, max_size=2).map(tuple),
    probabilities=st.none() | st.lists(NUMBERS, max_size=4),
    activated=st.booleans(),
    holdout=st.booleans(),
    unit=st.none() | IDENTIFIERS,
    group=st.none() | st.builds(GroupDraw, st.integers(0, 2**64 - 1), GROUPS, NUMBERS, NUMBERS),
    paused=st.booleans(),
)
REWARDS = st.builds(RewardGiven, NUMBERS, TEXTS)
ENCODED = st.one_of(DECISIONS, REWARDS).map(msgspec.msgpack.encode)


@st.composite
def usual_parts(draw):
    """Kind, key, about and body of an event as submax writes it."""
    identifier, kind = draw(IDENTIFIERS), draw(st.sampled_from([DECISION, REWARD, ACTIVATION]))
    if kind == DECISION:
        return kind, decision_key(identifier), None, msgspec.msgpack.encode(draw(DECISIONS))
    about = decision_key(identifier)
    if kind == ACTIVATION:
        return kind, activation_key(identifier), about, b""
    key = reward_key(identifier, draw(IDENTIFIERS))
    return kind, key, about, msgspec.msgpack.encode(draw(REWARDS))


@st.composite
def any_parts(draw):
    """Parts of an event that fit together or not."""
    kind = draw(st.sampled_from([DECISION, REWARD, ACTIVATION, TICK, "other"]))
    texts = st.none() | TEXTS | IDENTIFIERS.map(decision_key) | st.just("r a b") | st.just("r a")
    return kind, draw(texts), draw(texts), draw(st.binary(max_size=9) | ENCODED)


@st.composite
def logs(draw):
    """Pages of events, of which some are about others."""
    pages, position, earlier = [], 0, []
    for _ in range(draw(st.integers(1, 3))):
        page = []
        for _ in range(draw(st.integers(1, 8))):
            position += draw(st.integers(1, 2**40))
            kind, key, about, body = draw(usual_parts() | any_parts())
            about_position, about_at = draw(
                st.just((0, 0.0)) | st.tuples(st.integers(0, 2**40), NUMBERS)
            )
            decisions = [event for event in earlier if event.kind == DECISION]
            if decisions and draw(st.booleans()):
                other = draw(st.sampled_from(decisions))
                about_position, about_at, about = other.position, other.at, other.key
            at = draw(NUMBERS)
            event = Event(position, at, kind, key, about, about_position, about_at, body)
            earlier.append(event)
            page.append(event)
        pages.append(page)
    return pages


@settings(max_examples=100 if "SUBMAX_SOAK" in os.environ else 25)
@given(logs())
def test_every_event_is_restored_exactly(pages):
    writer = SegmentWriter(SETTINGS)
    for page in pages:
        writer.add(page)
    reader = SegmentReader(writer.finish())
    restored = [reader.page(number) for number in range(reader.pages)]
    # Packed, 0.0 and -0.0 are different.
    assert msgspec.msgpack.encode(restored) == msgspec.msgpack.encode(pages)
    assert reader.ends == [page[-1].position for page in pages]


def decided(position, eligible, probabilities, propensity):
    made = DecisionMade([1, 2.5], propensity, 3, [0.5, "de"], eligible, probabilities, True, False)
    body = msgspec.msgpack.encode(made)
    return Event(position, 1e9, DECISION, decision_key(new_identifier()), None, 0, 0.0, body)


def size_of(events):
    writer = SegmentWriter(SETTINGS)
    writer.add(events)
    return len(writer.finish())


def test_a_reward_beside_its_decision_costs_less_than_its_id():
    decisions = [decided(number, ((0, 1),), None, 0.5) for number in range(1, 1001)]
    body = msgspec.msgpack.encode(RewardGiven(1.0))
    rewards = [
        Event(
            1000 + one.position, 1e9, REWARD, f"r {one.key[2:]} reward", one.key, one.position, 1e9,
            body,
        )
        for one in decisions
    ]  # fmt: skip
    # 74 bits of an id are random.
    assert size_of(decisions + rewards) - size_of(decisions) < 1000 * 74 / 8


def test_changed_bytes_are_refused(seed):
    writer = SegmentWriter(SETTINGS)
    writer.add([decided(1, ((0, 1),), None, 0.5)])
    data = writer.finish()
    segment = ArchivedSegment(1, 1, 1, 2, 1, 1, len(data), hashlib.sha256(data).hexdigest())
    assert SegmentReader.of(data, segment, "it").pages == 1
    changed = bytearray(data)
    changed[seed % len(data)] ^= 1
    for found, state in ((bytes(changed), "damaged"), (data[:-1], "damaged"), (None, "missing")):
        with raises_code("invalid-input"):
            SegmentReader.of(found, segment, "the segment")


def test_a_segment_has_events():
    with raises_code("invalid-input"):
        SegmentWriter(SETTINGS).finish()
