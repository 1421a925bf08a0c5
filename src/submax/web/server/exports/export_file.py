"""Exports as HTTP responses."""

import os
import tempfile
from pathlib import Path

from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from submax.core.errors import StoreError
from submax.web.server.exports.export_runner import ExportRunner


def exported(runner: ExportRunner, bandit: str) -> FileResponse:
    """Export a bandit to a temporary file, which is deleted after it was sent."""
    number, name = tempfile.mkstemp(suffix=".parquet")
    os.close(number)
    path = Path(name)
    try:
        runner.write(bandit, path)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise StoreError(
            f"the export cannot be written on the server ({error.strerror or error}): free some "
            "space there and try again"
        ) from error
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return FileResponse(
        path,
        media_type="application/vnd.apache.parquet",
        filename=f"{bandit}.parquet",
        background=BackgroundTask(path.unlink, missing_ok=True),
    )
