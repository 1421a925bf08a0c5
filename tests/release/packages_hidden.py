"""Hides installed packages but some from Python; tests put it on the path as ``sitecustomize``."""

import os
import sys
from importlib.machinery import PathFinder

SHOWN = set(os.environ["SHOWN_PACKAGES"].split(","))


class ShownPackages(PathFinder):
    """Finds modules as Python does, except for those of hidden packages, which are not found."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        found = super().find_spec(name, path, target)
        if found is None or name.partition(".")[0] in SHOWN:
            return found
        places = [found.origin or "", *(found.submodule_search_locations or ())]
        return None if any("site-packages" in place for place in places) else found


sys.meta_path[sys.meta_path.index(PathFinder)] = ShownPackages
