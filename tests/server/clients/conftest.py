import asyncio
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from submax.client import AsyncClient, Client

DECISION = {"id": "d1", "action": "A", "propensity": 0.5, "version": 0}


class Stub:
    """A server that answers as it is told, the last answer for ever, and keeps what it was sent.

    An answer may be a function of the path and the body. In place of a status, "hang up" is no
    answer at all, "cut off" only the begin of one, and with "raw" the bytes are all that is sent.
    While ``gate`` is closed, nothing is answered.
    """

    def __init__(self):
        self.answers, self.seen, self.gate = [(200, DECISION)], [], Event()
        self.gate.set()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body are sent together: two small packets would take 40 ms.
            wbufsize = -1

            def do_POST(self):
                data = self.rfile.read(int(self.headers["content-length"] or 0))
                body = json.loads(data or b"null")
                stub.seen.append((self.path, body, dict(self.headers)))
                status, answer = stub.answers.pop(0) if len(stub.answers) > 1 else stub.answers[0]
                stub.gate.wait(60)
                self.close_connection |= isinstance(status, str)
                if status == "hang up":
                    return
                if status == "raw":
                    self.wfile.write(answer)
                    return
                if callable(answer):
                    status, answer = answer(self.path, body)
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                missing = 100 if status == "cut off" else 0
                self.send_response(200 if missing else status)
                self.send_header("Content-Length", str(len(data) + missing))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_PATCH = do_POST  # noqa: N815 - the names of the standard library

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self):
        self.gate.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Waited:
    """An ``AsyncClient`` whose methods are waited for, so that both clients have the same tests."""

    def __init__(self, *arguments, **options):
        self._client, self._runner = AsyncClient(*arguments, **options), asyncio.Runner()

    def __getattr__(self, name):
        method = getattr(self._client, name)
        return lambda *given, **named: self._runner.run(method(*given, **named))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._runner.run(self._client.close())
        self._runner.close()


@pytest.fixture
def stub():
    stub = Stub()
    yield stub
    stub.close()


@pytest.fixture(params=[Client, Waited], ids=["threads", "loop"])
def kind(request):
    return request.param


@pytest.fixture
def client(stub, kind):
    with kind(stub.address, "page", attempts=3) as client:
        yield client
