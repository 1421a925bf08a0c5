import time

import pytest
from refusals import raises_code

from submax.web.server.access.rate_limit import RateLimit
from submax.web.server.interface.body import DEEPEST, check_depth


def test_a_text_that_never_ends_is_read_once():
    body = b"[" * DEEPEST + b"{" + b'"' + b'\\"' * 400_000
    begin = time.process_time()
    with raises_code("invalid-input"):
        check_depth(body)
    # By looking again from each quote it would take hours, not seconds.
    assert time.process_time() - begin < 10


@pytest.mark.parametrize("body", [b'"[" ' * 50, b'["\\"[[[[" ]' * 30, b"[]" * 100])
def test_brackets_within_texts_and_side_by_side_are_not_deep(body):
    check_depth(body)


def test_a_large_cost_is_paid_before_the_next_request():
    now = [0.0]
    limit = RateLimit(clock=lambda: now[0])
    assert limit.allows("me", 10.0, cost=100.0)
    for now[0] in (1.0, 5.0, 9.0):
        assert not limit.allows("me", 10.0)
    now[0] = 10.0
    assert limit.allows("me", 10.0)
    assert limit.allows("you", 10.0)
