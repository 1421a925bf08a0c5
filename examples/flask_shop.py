"""A shop in Flask with a bandit in its own process: no server is needed.

Start it by ``flask --app flask_shop run``. A file has one writer: for several processes use
``submax.Client`` and a server, as django_shop.py does.
"""

import atexit
import os
from html import escape

from flask import Flask, request

import submax

HEADLINES = {"plain": "A good lamp.", "bold": "THE lamp!", "playful": "Let there be light."}
bandit = submax.open(
    os.environ.get("SHOP_STORE", "shop.db"), actions=list(HEADLINES), reward_wait=3600
)
atexit.register(bandit.close)
app = Flask(__name__)


@app.get("/")
def show() -> str:
    """Show the lamp, with the id of the decision in the form."""
    decision = bandit.decide()
    return (
        f"<h1>{escape(HEADLINES[str(decision.action)])}</h1>"
        f'<form method="post" action="/buy?visit={decision.id}"><button>Buy</button></form>'
    )


@app.post("/buy")
def buy() -> tuple[dict[str, str], int]:
    """Sell a lamp, and reward the decision of the visit."""
    try:
        return {"status": bandit.reward(request.args.get("visit", ""), 1.0).status}, 200
    except submax.InputError as error:
        return {"error": str(error)}, 400
