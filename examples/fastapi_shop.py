"""A shop in FastAPI: every page view decides on a server, every purchase rewards.

Start it with ``uvicorn fastapi_shop:app --port 8001``; examples/README.md starts the server.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape

from fastapi import FastAPI, HTTPException
from fastapi.responses import HTMLResponse

import submax

HEADLINES = {"plain": "A good lamp.", "bold": "THE lamp!", "playful": "Let there be light."}
bandit = submax.AsyncClient(
    os.environ.get("SHOP_SUBMAX", "http://127.0.0.1:8000"),
    "shop",
    key=os.environ.get("SHOP_KEY"),
    deadline=float(os.environ.get("SHOP_DEADLINE", "1")),
)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Close the client when the shop closes, so no reward is lost."""
    yield
    await bandit.close()


app = FastAPI(lifespan=lifespan)


@app.get("/", response_class=HTMLResponse)
async def show() -> str:
    """Show the lamp; if there is no decision, for whatever reason, with the plain headline."""
    try:
        decision = await bandit.decide()
    except submax.Error:
        return page(HEADLINES["plain"], "")
    return page(HEADLINES[str(decision.action)], decision.id)


@app.post("/buy")
async def buy(visit: str) -> dict[str, str]:
    """Sell a lamp, and reward the decision of the visit."""
    try:
        receipt = await bandit.reward(visit, 1.0)
    except submax.InputError as error:
        raise HTTPException(400, str(error)) from error
    return {"status": receipt.status}


def page(headline: str, visit: str) -> str:
    """The page of the lamp, with the id of the decision in its form."""
    return (
        f"<h1>{escape(headline)}</h1>"
        f'<form method="post" action="/buy?visit={escape(visit)}"><button>Buy</button></form>'
    )
