import pytest

from submax.core.errors import InputError
from submax.web.server.interface import messages as m
from submax.web.server.interface.body_decoder import BodyDecoder

TEXT = "give a text of 1 to 128 printable ASCII characters without spaces"


@pytest.mark.parametrize(
    ("kind", "body", "sentence"),
    [
        (m.Set, '{"refit_row": 3}', "the body has the field 'refit_row', which is not known: did"),
        (m.Set, '{"refit_row": 3}', "did you mean 'refit_rows'? allowed: alarms, archive_after"),
        (m.Set, '{"guard_rails": {"minimm": 1}}', "guard_rails has the field 'minimm', which is"),
        (m.Set, '{"alarms": {"webhok": 1}}', "allowed: false_alarms, smallest_propensity, webhook"),
        (m.Set, '{"status": "stopped"}', "allowed: active, archived, paused"),
        (m.ChangeChoice, '{"verb": "pase", "choice": "A"}', "verb is 'pase', which is not known:"),
        (m.NewKey, '{"scopes": ["read", "rewad"]}', "did you mean 'reward'? allowed: admin, de"),
        (m.Decide, '{"unit": "a b"}', f"unit is not allowed: {TEXT}"),
        (m.DecideMany, '{"requests": [{"id": "é"}]}', f"requests[0].id is not allowed: {TEXT}"),
        (m.DecideMany, '{"requests": [{"uni": ""}]}', "requests[0] has the field 'uni'"),
        (m.Create, '{"name": "A B", "actions": ["A"]}', "name is not allowed: give a text of up"),
        (m.Reward, '{"id": "a"}', "missing required field `value`"),
        (m.Reward, '{"id": ', "see /openapi.json for what is allowed"),
    ],
)
def test_a_wrong_body_is_one_sentence_that_says_what_is_allowed(kind, body, sentence):
    with pytest.raises(InputError) as raised:
        BodyDecoder(kind).decode(body.encode())
    assert sentence in str(raised.value)
    assert raised.value.code == "invalid-input"


def test_a_right_body_is_a_message():
    assert BodyDecoder(m.Decide).decode(b'{"unit": "visitor"}') == m.Decide(unit="visitor")
