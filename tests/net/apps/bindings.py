# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What test_bindings.c has each of two hosts run: bindings.py OWN OTHER ABSENT. It prints "order"
and a hash of what it has delivered, and "done". bindings.py --layout prints the layout of each
struct."""

import asyncio
import ctypes
import errno
import hashlib
import sys

import barline

COUNT = 100


def layout():
    for s in barline._STRUCTS:
        print(s._name_, "sizeof", 0, ctypes.sizeof(s))
        for name, *_ in s._fields_:
            f = getattr(s, name)
            print(s._name_, name, f.offset, f.size)


def refused(ep, absent):
    events = []
    ep.on_peer(lambda who, what: events.append((who, what)))
    for _ in range(50):
        try:
            ep.send_reliable([(absent, b"x")])
            raise AssertionError("a send to an absent peer was accepted")
        except OSError as e:
            assert e.errno == errno.EHOSTUNREACH and absent in str(e), e
        ep.process()
    assert not events
    try:
        ep.peer_wait(absent, 0.2)
        raise AssertionError("an absent peer answers")
    except TimeoutError:
        pass
    try:
        ep.peer_wait(absent, 0)
        raise AssertionError("an absent peer answers")
    except BlockingIOError:
        pass


def raising(ep, other):
    def on_peer(who, what):
        assert who == other and what == barline.PEER_JOINED
        raise KeyError("raised")

    ep.on_peer(on_peer)
    try:
        while True:
            ep.peer_wait(other, 60)
            ep.process()
    except KeyError as e:
        assert e.args == ("raised",)
    ep.on_peer(None)


def order(ep, me, other):
    """Returns what the other one has sent after that, if it is ahead of this one."""
    rest = []
    h = hashlib.sha256()
    got = sent = 0
    while got < 2 * COUNT:
        if sent < COUNT:
            try:
                text = f"{me} {sent}".encode() + b"x" * (sent * 30)
                ep.send_reliable([(me, text), (other, text, sent)])
                sent += 1
            except BlockingIOError:
                ep.wait(barline.WAIT_SEND_RELIABLE | barline.WAIT_RECV_RELIABLE)
        for d in ep.recv_reliable(0 if sent < COUNT else None):
            if got == 2 * COUNT:
                rest.append(d)
                continue
            assert d.data.startswith(d.src.encode()), (d.src, len(d.data), d.data[:60])
            h.update(b"%d" % d.ts + d.data)
            got += 1
    while not ep.wait(barline.WAIT_ACKED):
        pass
    print("order", h.hexdigest())
    return rest


async def talk(ep, me, other, rest):
    """Both streams in one event loop. Best effort: until the other one has said that it has heard.
    Reliable: one message, which may be in @rest already."""

    async def say():
        while True:
            ep.send([(other, b"heard" if heard else b"hello")])
            await asyncio.sleep(0.02)

    async def once():
        (m,) = rest or await ep.arecv(reliable=True)
        assert m.src == other and m.data == b"once"

    heard = False
    reliable = asyncio.ensure_future(once())
    await asyncio.sleep(0)  # it waits before the other one does
    ep.send_reliable([(other, b"once")])
    task = asyncio.ensure_future(say())
    async for m in ep.amessages():
        assert m.src == other
        heard = True
        if m.data == b"heard":
            break
    await reliable
    for _ in range(5):
        ep.send([(other, b"heard")])
        await asyncio.sleep(0.02)
    task.cancel()


async def closed(ep):
    wait = asyncio.ensure_future(ep.arecv(reliable=True))
    await asyncio.sleep(0.01)
    ep.close()
    try:
        await wait
        raise AssertionError("a closed endpoint delivers")
    except ValueError:
        pass


def wrong_data(ep, me):
    for data, error in ((5, TypeError), ("text", TypeError), (b"x" * (1 << 20) + b"y", OSError)):
        try:
            ep.send([(me, data)])
            raise AssertionError(f"{type(data)} was sent")
        except error:
            pass


def clocks(ep):
    t = ep.bus_time()
    assert t.state != barline.BUS_VOID and 0 < t.bound_ns < 10**9
    with barline.BusClock() as c:
        assert abs(c.read().bus_ns - t.bus_ns) < 60 * 10**9
    assert ep.timestamp() >= t.bus_ns


def main():
    me, other, absent = map(barline.Address, sys.argv[1:])
    with barline.Endpoint(me.port) as ep:
        assert ep.address == me
        wrong_data(ep, me)
        refused(ep, absent)
        raising(ep, other)
        rest = order(ep, me, other)
        asyncio.run(talk(ep, me, other, rest))
        clocks(ep)
        stats = ep.stats()
        assert stats["scatterings"] > COUNT and stats["reliable_delivered"] == 2 * COUNT + 1
        while ep.pending():  # the other one waits until its messages are taken, too
            ep.recv(0.01)
        ep.helper_start()
        ep.helper_stop()
        asyncio.run(closed(ep))
    try:
        ep.process()
        raise AssertionError("a closed endpoint works")
    except ValueError:
        pass
    print("done", flush=True)


if sys.argv[1] == "--layout":
    layout()
else:
    main()
