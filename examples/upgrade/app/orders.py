"""Orders: an application written for FastAPI 0.99, which runs on that of today unchanged."""

import os
from datetime import UTC, datetime
from decimal import Decimal

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, Field


class Line(BaseModel):
    """So many of one product."""

    product: int = Field(ge=1)
    count: int = Field(ge=1, le=1000)
    price: Decimal


class Order(BaseModel):
    """What a customer wants."""

    customer: str = Field(min_length=1, max_length=80)
    placed: datetime
    lines: list[Line]


class Answer(BaseModel):
    """What an order comes to."""

    customer: str
    lines: int
    cents: int


ORDERS = [
    Order(
        customer=f"customer {number}",
        placed=datetime(2026, 3, 1, tzinfo=UTC),
        lines=[Line(product=product, count=1, price=Decimal(product)) for product in range(1, 5)],
    )
    for number in range(50)
]

app = FastAPI()


@app.post("/orders", response_model=Answer)
async def order(sent: Order) -> Answer:
    """Check an order and answer its sum."""
    cents = sum(int(line.price * 100) * line.count for line in sent.lines)
    return Answer(customer=sent.customer, lines=len(sent.lines), cents=cents)


@app.get("/orders", response_model=list[Order])
async def orders() -> list[Order]:
    """List orders."""
    return ORDERS


@app.get("/healthz")
async def healthz() -> str:
    """Answer as soon as requests are served."""
    return "ok"


if __name__ == "__main__":
    uvicorn.run(
        "orders:app",
        # A pod of an IPv6 cluster has no other address.
        host="::" if ":" in os.environ.get("POD_IP", "") else "0.0.0.0",
        port=int(os.environ.get("PORT", "8080")),
        workers=int(os.environ.get("WORKERS", "1")),
        access_log=False,
    )
