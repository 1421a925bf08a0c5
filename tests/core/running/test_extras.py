import pytest

from submax.core.errors import MissingExtraError
from submax.core.running import extras
from submax.core.running.extras import require_extra


def test_what_is_installed_is_not_refused():
    require_extra("neural", "this", "numpy", "scipy")


def test_what_is_missing_is_named_with_the_extra_to_install(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name != "scipy" else object())
    with pytest.raises(MissingExtraError) as error:
        require_extra("neural", "this estimator", "jax", "scipy", "optax")
    expected = 'this estimator needs jax, optax, not installed here: pip install "submax[neural]"'
    assert str(error.value) == expected


def test_it_is_an_import_error():
    with pytest.raises(ImportError):
        require_extra("neural", "this", "there_is_no_such_module")
