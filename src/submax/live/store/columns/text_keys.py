"""Keys that are texts already."""

from collections.abc import Sequence

from submax.live.store.columns.key_column import KeyColumn


class TextKeys(KeyColumn):
    """Keys, and the keys of the decisions that events are about, as texts."""

    def __init__(self, keys: Sequence[str | None], about: Sequence[str | None]) -> None:
        self._keys, self._about = keys, about

    def texts(self, places: Sequence[int]) -> list[str | None]:
        return [self._keys[place] for place in places]

    def about_texts(self, places: Sequence[int]) -> list[str | None]:
        return [self._about[place] for place in places]
