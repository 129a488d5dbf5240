# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Totally ordered messages among the endpoints of a rack: libbarline for Python.

    import barline

    with barline.Endpoint(port=61700) as ep:
        ep.send([("10.0.0.1:61700", b"x"), ("10.0.0.2:61700", b"y")])  # one scattering
        for m in ep.messages():                                       # in the total order
            print(m.ts, m.src, m.data)

The functions are those of libbarline(3), which has the rules; the names lack "bl_". Differences:

 - Errors are OSError with the errno and the library's sentence, so EAGAIN is BlockingIOError and
   ETIMEDOUT is TimeoutError. An endpoint that is out raises Stale, which is an OSError, too.
 - Timeouts are seconds, as elsewhere in Python; None: no limit. recv() returns an empty list after
   one, peer_wait() raises TimeoutError.
 - The data of a delivery is copied, so it stays valid.
 - An exception that a callback raises is raised by the call during which the callback ran.
 - An endpoint belongs to one thread at a time. Calls release the interpreter's lock.

The library is found by its name; BARLINE_LIBRARY in the environment names another file.
"""

import asyncio
import ctypes
import errno
import os
import time
import typing
from ctypes import POINTER, CFUNCTYPE, c_char_p, c_int, c_int32, c_size_t, c_uint, c_uint16
from ctypes import c_uint32, c_uint64, c_uint8, c_void_p

MESSAGE_MAX = 1 << 20
SCATTER_MAX = 1024

MORE = 1

WAIT_SEND = 1
WAIT_RECV = 2
WAIT_SEND_RELIABLE = 4
WAIT_RECV_RELIABLE = 8
WAIT_ACKED = 16
WAIT_CREDITED = 32

BUS_VOID, BUS_SYNCED, BUS_HOLDOVER, BUS_TRUSTED = range(4)

FAIL_LATE, FAIL_LOST, FAIL_INCOMPLETE, FAIL_NO_MEMORY, FAIL_UNREACHABLE = range(1, 6)
FAIL_MALFORMED, FAIL_FAILED, FAIL_UNKNOWN, FAIL_LEFT = range(6, 10)

GONE_UNKNOWN, GONE_LEFT, GONE_DIED, GONE_IN_FLIGHT, GONE_WINDOW, GONE_RING = range(6)
GONE_UNREACHABLE, GONE_CUT_OFF, GONE_DOWN, GONE_TORN = range(6, 10)

PEER_JOINED, PEER_BACK, PEER_LOST = range(1, 4)

FLOW_RESEND = 1


class Stale(OSError):
    """The endpoint is out (ESTALE): close it, and begin anew with another one."""


# ---- the structs of barline.h; a test compares them with the compiler's layout ----


class _Addr(ctypes.Structure):
    _name_ = "bl_addr"
    _fields_ = [("ip", c_uint8 * 16), ("port", c_uint16)]


class _Options(ctypes.Structure):
    _name_ = "bl_options"
    _fields_ = [("port", c_uint16), ("ring_bytes", c_uint32), ("send_buffer", c_uint32),
                ("family", c_int), ("socket_path", c_char_p)]


class _BusTime(ctypes.Structure):
    _name_ = "bl_bus_time"
    _fields_ = [("size", c_size_t), ("bus_ns", c_uint64), ("bound_ns", c_uint64),
                ("mono_ns", c_uint64), ("void_after_ns", c_uint64), ("tai_offset_s", c_int32),
                ("state", c_uint32)]


class _Msg(ctypes.Structure):
    _name_ = "bl_msg"
    _fields_ = [("dst", _Addr), ("data", c_void_p), ("len", c_uint32), ("cookie", c_uint64)]


class _FlowHint(ctypes.Structure):
    _name_ = "bl_flow_hint"
    _fields_ = [("bytes", c_uint64), ("deadline_us", c_uint32), ("coflow", c_uint32),
                ("flags", c_uint32), ("reserved", c_uint32)]


class _Pending(ctypes.Structure):
    _name_ = "bl_pending"
    _fields_ = [("dst", _Addr), ("frames", c_uint32), ("messages", c_uint32),
                ("cookie", c_uint64)]


class _Delivery(ctypes.Structure):
    _name_ = "bl_delivery"
    _fields_ = [("ts", c_uint64), ("src", _Addr), ("data", c_void_p), ("len", c_uint32)]


class _Stale(ctypes.Structure):
    _name_ = "bl_stale"
    _fields_ = [("size", c_uint32), ("undecided", c_uint32), ("ts", c_uint64)]


class _Stats(ctypes.Structure):
    _name_ = "bl_stats"
    _fields_ = (
        [("size", c_uint32), ("peers", c_uint32)]
        + [(name, c_uint64) for name in (
            "scatterings messages_sent frames_sent messages_delivered frames_received "
            "late_dropped duplicates lost_frames malformed send_failed again credits_sent "
            "credits_received probes_sent naks_sent barrier queued_frames sleeps wakeups "
            "reliable_delivered retransmits commit prepared_frames discarded recalls_sent "
            "recalled forwarded refused reconnects").split()]
        + [("strangers", c_uint32), ("senders", c_uint32)]
        + [(name, c_uint64) for name in (
            "memory memory_max no_room unanswered ring_full sent_ts").split()]
    )


_STRUCTS = (_Addr, _Options, _BusTime, _Msg, _FlowHint, _Delivery, _Pending, _Stale,
            _Stats)

_SEND_FAIL = CFUNCTYPE(None, c_void_p, c_uint64, POINTER(_Addr), c_uint64, c_int)
_PROC_FAIL = CFUNCTYPE(None, c_void_p, POINTER(_Addr), c_uint64)
_PROC_GONE = CFUNCTYPE(None, c_void_p, POINTER(_Addr), c_uint64, c_int)
_PEER = CFUNCTYPE(None, c_void_p, POINTER(_Addr), c_int)

_EP = c_void_p
_FUNCTIONS = {
    "bl_addr_parse": (c_int, POINTER(_Addr), c_char_p),
    "bl_addr_format": (c_void_p, POINTER(_Addr), c_char_p, c_size_t),
    "bl_init": (c_int, POINTER(_EP), POINTER(_Options)),
    "bl_exit": (None, _EP),
    "bl_self": (POINTER(_Addr), _EP),
    "bl_get_timestamp": (c_uint64, _EP),
    "bl_get_bus_time": (c_int, _EP, POINTER(_BusTime)),
    "bl_bus_clock_open": (c_int, POINTER(c_void_p), c_char_p),
    "bl_bus_clock_read": (c_int, c_void_p, POINTER(_BusTime)),
    "bl_bus_clock_close": (None, c_void_p),
    "bl_send": (c_int, _EP, POINTER(_Msg), c_size_t, c_uint),
    "bl_send_reliable": (c_int, _EP, POINTER(_Msg), c_size_t, c_uint),
    "bl_flush": (c_int, _EP),
    "bl_flow_hint": (c_int, c_int, POINTER(_FlowHint)),
    "bl_recv": (c_int, _EP, POINTER(_Delivery), c_size_t, c_int),
    "bl_recv_reliable": (c_int, _EP, POINTER(_Delivery), c_size_t, c_int),
    "bl_recv_undecided": (c_int, _EP, POINTER(_Delivery), c_size_t),
    "bl_get_stale": (c_int, _EP, POINTER(_Stale)),
    "bl_fd": (c_int, _EP),
    "bl_process": (c_int, _EP),
    "bl_wait": (c_int, _EP, c_uint, c_int),
    "bl_on_send_fail": (None, _EP, _SEND_FAIL, c_void_p),
    "bl_on_proc_fail": (None, _EP, _PROC_FAIL, c_void_p),
    "bl_on_proc_gone": (None, _EP, _PROC_GONE, c_void_p),
    "bl_on_peer": (None, _EP, _PEER, c_void_p),
    "bl_peer_wait": (c_int, _EP, POINTER(_Addr), c_int),
    "bl_helper_start": (c_int, _EP, c_uint64),
    "bl_helper_stop": (None, _EP),
    "bl_get_pending": (c_int, _EP, POINTER(_Pending), c_size_t),
    "bl_get_stats": (c_int, _EP, POINTER(_Stats)),
    "bl_strerror": (c_char_p, _EP),
}


def _load():
    lib = ctypes.CDLL(os.environ.get("BARLINE_LIBRARY") or "libbarline.so.0")
    for name, (result, *args) in _FUNCTIONS.items():
        f = getattr(lib, name)
        f.restype = result
        f.argtypes = args
    return lib


_lib = _load()


def _error(number, text=None):
    if number == errno.ESTALE:
        return Stale(number, text or os.strerror(number))
    return OSError(number, text or os.strerror(number))


class Address(str):
    """The address of an endpoint, such as "10.0.0.1:61700" or "[fd00::1]:61700"."""

    __slots__ = ("_c",)

    def __new__(cls, text):
        if isinstance(text, Address):
            return text
        c = _Addr()
        if _lib.bl_addr_parse(ctypes.byref(c), str(text).encode()):
            raise ValueError(f"{text!r} is not an address with a port")
        return cls._of(c)

    @classmethod
    def _of(cls, c):
        buf = ctypes.create_string_buffer(64)
        _lib.bl_addr_format(ctypes.byref(c), buf, len(buf))
        a = str.__new__(cls, buf.value.decode())
        a._c = _Addr.from_buffer_copy(c)
        return a

    @property
    def port(self):
        """The UDP port. 0, in a failure: all endpoints of that IP address."""
        return self._c.port

    @property
    def ip(self):
        """16 bytes: IPv6, or IPv4 as ::ffff:a.b.c.d."""
        return bytes(self._c.ip)


class Delivery(typing.NamedTuple):
    """One delivered message."""

    ts: int
    src: Address
    data: bytes


class BusTime(typing.NamedTuple):
    """One reading of the host's clock: struct bl_bus_time."""

    bus_ns: int
    bound_ns: int
    mono_ns: int
    void_after_ns: int
    tai_offset_s: int
    state: int


def _read_clock(read, handle):
    t = _BusTime(size=ctypes.sizeof(_BusTime))
    for _ in range(1000):
        rc = read(handle, ctypes.byref(t))
        if rc != -errno.EAGAIN:
            break
    if rc and rc != -errno.ETIME:
        raise _error(-rc)
    return BusTime(t.bus_ns, t.bound_ns, t.mono_ns, t.void_after_ns, t.tai_offset_s, t.state)


class BusClock:
    """The clock of the host, for a process that is no endpoint."""

    def __init__(self, socket_path=None):
        self._c = c_void_p()
        rc = _lib.bl_bus_clock_open(ctypes.byref(self._c),
                                    os.fsencode(socket_path) if socket_path else None)
        if rc:
            raise _error(-rc, (_lib.bl_strerror(None) or b"").decode())

    def read(self):
        """The present BusTime. Its state is BUS_VOID if the clock is void."""
        if not self._c:
            raise ValueError("the clock is closed")
        return _read_clock(_lib.bl_bus_clock_read, self._c)

    def close(self):
        """Unmap the clock."""
        c, self._c = self._c, c_void_p()
        _lib.bl_bus_clock_close(c)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def flow_hint(sock, nbytes=0, deadline_us=0, coflow=0, flags=0):
    """Tell the host about the flow that a connected socket is about to send."""
    h = _FlowHint(nbytes, deadline_us, coflow, flags, 0)
    rc = _lib.bl_flow_hint(sock if isinstance(sock, int) else sock.fileno(), ctypes.byref(h))
    if rc:
        raise _error(-rc)


def _recv_undecided(ep, out, n, _ms):
    return _lib.bl_recv_undecided(ep, out, n)


class Endpoint:
    """An endpoint of this host (bl_init). Close it, or use it in a with statement."""

    def __init__(self, port=0, *, ring_bytes=0, send_buffer=0, family=0, socket_path=None,
                 batch=64):
        self._ep = c_void_p()
        self._keep = {}
        self._raised = None
        self._pending = {}
        self._waiting = set()  # futures of arecv(), all of one event loop
        self._out = (_Delivery * batch)()
        o = _Options(port, ring_bytes, send_buffer, family,
                     os.fsencode(socket_path) if socket_path else None)
        rc = _lib.bl_init(ctypes.byref(self._ep), ctypes.byref(o))
        if rc:
            raise _error(-rc, (_lib.bl_strerror(None) or b"").decode())
        self.address = Address._of(_lib.bl_self(self._ep).contents)

    def close(self):
        """Leave the rack. What waits in an event loop raises ValueError."""
        ep, self._ep = self._ep, c_void_p()
        for f in self._waiting:
            f.get_loop().remove_reader(_lib.bl_fd(ep))
            if not f.done():
                f.set_exception(ValueError("the endpoint is closed"))
        self._waiting.clear()
        _lib.bl_exit(ep)
        self._keep.clear()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    # ---- calls ----

    def _handle(self):
        if not self._ep:
            raise ValueError("the endpoint is closed")
        return self._ep

    def _done(self, rc):
        """The result of a call; raises what it reports, or what a callback has raised."""
        raised, self._raised = self._raised, None
        if raised:
            raise raised
        if rc < 0:
            raise _error(-rc, (_lib.bl_strerror(self._ep) or b"").decode())
        return rc

    def _blocking(self, call, timeout):
        """Make @call(ms) until it is not interrupted; signal handlers of Python run in between."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = -1
            if end is not None:  # INT_MAX ms are 24 days
                left = int(min(max(0, (end - time.monotonic()) * 1000 + 0.999), 0x7fffffff))
            rc = call(left)
            if rc != -errno.EINTR:
                return self._done(rc)

    # ---- sending ----

    def _send(self, send, messages, more):
        vec = (_Msg * len(messages))()
        keep = []
        for m, (dst, data, *cookie) in zip(vec, messages):
            if not isinstance(data, bytes):
                data = memoryview(data).tobytes()  # bytes(5) would be five zeros
            keep.append(data)
            m.dst = Address(dst)._c
            m.data = ctypes.cast(c_char_p(data), c_void_p)
            m.len = min(len(data), 0xffffffff)  # which the library refuses
            m.cookie = cookie[0] if cookie else 0
        self._done(send(self._handle(), vec, len(messages), MORE if more else 0))

    def send(self, messages, more=False):
        """Send one scattering, best effort: a sequence of (address, data) or (address, data,
        cookie). Raises BlockingIOError if the send buffer is full: wait(WAIT_SEND)."""
        self._send(_lib.bl_send, messages, more)

    def send_reliable(self, messages, more=False):
        """Send one scattering reliably: all its receivers deliver it, or none does."""
        self._send(_lib.bl_send_reliable, messages, more)

    def flush(self):
        """Send what more=True held back."""
        self._done(_lib.bl_flush(self._handle()))

    # ---- receiving ----

    def _take(self, n):
        return [Delivery(d.ts, Address._of(d.src),
                         ctypes.string_at(d.data, d.len) if d.len else b"")
                for d in self._out[:n]]

    def _receive(self, recv, timeout):
        """Deliver. What came while a callback raised is returned by the next call."""
        ep, out = self._handle(), self._out

        def call(ms):
            rc = recv(ep, out, len(out), ms)
            if rc > 0 and self._raised:
                self._pending[recv] = self._take(rc)
            return rc

        return self._pending.pop(recv, None) or self._take(self._blocking(call, timeout))

    def recv(self, timeout=None):
        """Deliver messages of the best-effort stream: a list, empty after the timeout."""
        return self._receive(_lib.bl_recv, timeout)

    def recv_reliable(self, timeout=None):
        """Deliver messages of the reliable stream: a list, empty after the timeout."""
        return self._receive(_lib.bl_recv_reliable, timeout)

    def recv_undecided(self):
        """Deliver what is undecided, after recv_reliable() has raised Stale."""
        return self._receive(_recv_undecided, 0)

    def messages(self, reliable=False):
        """Iterate over the messages of a stream, for ever."""
        recv = self.recv_reliable if reliable else self.recv
        while True:
            yield from recv()

    # ---- asyncio ----

    def _wake(self):
        for f in self._waiting:
            if not f.done():
                f.set_result(None)

    async def _readable(self):
        """Wait until the descriptor is readable, beside other tasks that do."""
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        if not self._waiting:  # a descriptor has one reader, which wakes all
            loop.add_reader(self.fileno(), self._wake)
        self._waiting.add(ready)
        try:
            await ready
        finally:
            if ready in self._waiting:
                self._waiting.discard(ready)
                if not self._waiting:
                    loop.remove_reader(self.fileno())

    async def arecv(self, reliable=False):
        """recv() or recv_reliable() in an event loop: waits until there is a message. One task may
        wait for each stream."""
        recv = self.recv_reliable if reliable else self.recv
        while True:
            self.process()
            got = recv(0)
            if got:
                return got
            if not self.process():  # this arms the wake-up of the descriptor
                await self._readable()
            else:
                # It stays readable for messages of the other stream, until they are taken.
                await asyncio.sleep(0.001)

    async def amessages(self, reliable=False):
        """Iterate over the messages of a stream in an event loop, for ever."""
        while True:
            for m in await self.arecv(reliable):
                yield m

    # ---- events and waiting ----

    def fileno(self):
        """The descriptor for poll() and epoll (bl_fd)."""
        return _lib.bl_fd(self._handle())

    def process(self):
        """Do what is due. Returns the number of messages that can be delivered now."""
        return self._done(_lib.bl_process(self._handle()))

    def wait(self, what, timeout=None):
        """Wait for WAIT_*. Returns those that hold; 0 after the timeout."""
        ep = self._handle()
        return self._blocking(lambda ms: _lib.bl_wait(ep, what, ms), timeout)

    def peer_wait(self, peer, timeout=None):
        """Wait until another endpoint answers; raises TimeoutError, or BlockingIOError if the
        timeout is 0."""
        ep, a = self._handle(), Address(peer)._c
        self._blocking(lambda ms: _lib.bl_peer_wait(ep, ctypes.byref(a), ms), timeout)

    def _callback(self, register, kind, fn):
        def call(_ctx, *args):
            try:
                fn(*(Address._of(a.contents) if isinstance(a, POINTER(_Addr)) else a
                     for a in args))
            except BaseException as e:  # raised when the library has returned
                self._raised = self._raised or e

        c = kind(call) if fn else kind()
        register(self._handle(), c, None)
        self._keep[kind] = c  # as long as the library may call it

    def on_send_fail(self, fn):
        """fn(ts, dst, cookie, FAIL_*): one message was not delivered."""
        self._callback(_lib.bl_on_send_fail, _SEND_FAIL, fn)

    def on_proc_fail(self, fn):
        """fn(who, ts): a process has failed or left."""
        self._callback(_lib.bl_on_proc_fail, _PROC_FAIL, fn)

    def on_proc_gone(self, fn):
        """fn(who, ts, GONE_*): as on_proc_fail, with the reason."""
        self._callback(_lib.bl_on_proc_gone, _PROC_GONE, fn)

    def on_peer(self, fn):
        """fn(who, PEER_*): a peer has joined, is back, or is lost. Scatterings to peers that are
        not there raise OSError with EHOSTUNREACH."""
        self._callback(_lib.bl_on_peer, _PEER, fn)

    # ---- clock, helper, counters ----

    def timestamp(self):
        """The present bus time, ns; 0 if the clock is void."""
        return _lib.bl_get_timestamp(self._handle())

    def bus_time(self):
        """The present BusTime with its bound. Its state is BUS_VOID if the clock is void."""
        return _read_clock(_lib.bl_get_bus_time, self._handle())

    def helper_start(self, nbytes=0):
        """Start the thread that works while the program does not call the library."""
        self._done(_lib.bl_helper_start(self._handle(), nbytes))

    def helper_stop(self):
        """End that thread."""
        _lib.bl_helper_stop(self._handle())

    def stats(self):
        """The counters of the endpoint, by name."""
        s = _Stats(size=ctypes.sizeof(_Stats))
        self._done(_lib.bl_get_stats(self._handle(), ctypes.byref(s)))
        return {name: getattr(s, name) for name, _ in s._fields_ if name != "size"}

    def pending(self):
        """(address, frames, messages, cookie) of each destination at which something is
        outstanding; see bl_get_pending(3)."""
        ep, n, most = self._handle(), 0, 16
        while True:
            v = (_Pending * most)()
            n = _lib.bl_get_pending(ep, v, most)
            if n <= most:
                break
            most = n
        return [(Address._of(p.dst), p.frames, p.messages, p.cookie) for p in v[:n]]

    def stale(self):
        """(ts, undecided): how far the endpoint came, after recv_reliable() has raised Stale."""
        s = _Stale(size=ctypes.sizeof(_Stale))
        rc = _lib.bl_get_stale(self._handle(), ctypes.byref(s))
        if rc:
            raise _error(-rc)
        return s.ts, s.undecided
