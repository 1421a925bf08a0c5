"""Write the generated pages of docs/reference: ``make docs``."""

from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    for path in sorted(Path(__file__).parent.glob("*_page.py")):
        module = import_module(f"docs.generators.reference.{path.stem}")
        module.PAGE.write_text(module.page(), encoding="utf-8")
