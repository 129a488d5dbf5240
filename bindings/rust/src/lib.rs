// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Totally ordered messages among the endpoints of a rack: a thin safe layer over libbarline.
//!
//! ```no_run
//! let mut ep = barline::Endpoint::new(61700)?;
//! let a = "10.0.0.1:61700".parse()?;
//!
//! ep.send(&[(a, b"x", 0)])?;
//! for d in ep.recv(None)? {
//!     println!("{} {} {:?}", d.ts, d.src, d.data);
//! }
//! # Ok::<(), barline::Error>(())
//! ```
//!
//! libbarline(3) has the rules. Callbacks do not run Rust code from within C: what happens to
//! messages, processes and peers is collected, and [`Endpoint::events`] takes it. That order is the
//! library's: before a message at or above the timestamp of a failure is delivered, the failure is
//! among the events.

pub mod sys;

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::os::unix::io::{AsRawFd, RawFd};
use std::ptr;
use std::str::FromStr;
use std::time::Duration;

pub const MORE: u32 = 1;
pub const WAIT_SEND: u32 = 1;
pub const WAIT_RECV: u32 = 2;
pub const WAIT_SEND_RELIABLE: u32 = 4;
pub const WAIT_RECV_RELIABLE: u32 = 8;
pub const WAIT_ACKED: u32 = 16;
pub const WAIT_CREDITED: u32 = 32;

/// An errno, and the library's sentence about it.
#[derive(Debug, Clone)]
pub struct Error {
    pub errno: i32,
    pub text: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl From<Error> for std::io::Error {
    fn from(e: Error) -> Self {
        std::io::Error::from_raw_os_error(e.errno)
    }
}

/// The address of an endpoint, such as 10.0.0.1:61700 or \[fd00::1\]:61700.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub sys::bl_addr);

impl Address {
    /// The UDP port. 0, in a failure: all endpoints of that IP address.
    pub fn port(&self) -> u16 {
        self.0.port
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut a = sys::bl_addr::default();
        let c = CString::new(text).unwrap_or_default();

        match unsafe { sys::bl_addr_parse(&mut a, c.as_ptr()) } {
            0 => Ok(Address(a)),
            rc => Err(Error {
                errno: -rc,
                text: format!("{:?} is not an address with a port", text),
            }),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buf = [0 as c_char; 64];
        let text = unsafe {
            sys::bl_addr_format(&self.0, buf.as_mut_ptr(), buf.len());
            CStr::from_ptr(buf.as_ptr())
        };

        f.write_str(&text.to_string_lossy())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What has happened. The numbers are those of barline.h: BL_FAIL_*, BL_GONE_*.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// One message was not delivered.
    SendFail { ts: u64, dst: Address, cookie: u64, why: u32 },
    /// A process has failed or left.
    ProcGone { who: Address, ts: u64, why: u32 },
    /// A peer that was not known answers.
    Joined(Address),
    /// The peer that was lost answers again.
    Back(Address),
    /// A peer does not answer any more.
    Lost(Address),
}

/// One delivered message. The data is the library's, and valid as long as this borrows it.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    pub ts: u64,
    pub src: Address,
    pub data: &'a [u8],
}

/// An endpoint of this host. It can be sent to another thread, but belongs to one at a time.
pub struct Endpoint {
    ep: *mut sys::bl_endpoint,
    /// From Box::into_raw(): the library has this pointer as well, so there must be no Box.
    events: *mut VecDeque<Event>,
    raw: Vec<sys::bl_delivery>,
}

unsafe impl Send for Endpoint {}

const BATCH: usize = 64;

fn text_of(ep: *const sys::bl_endpoint) -> String {
    let text = unsafe { sys::bl_strerror(ep) };

    if text.is_null() {
        return String::new();
    }
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn ms(timeout: Option<Duration>) -> c_int {
    match timeout {
        None => -1,
        Some(t) => ((t.as_nanos() + 999_999) / 1_000_000).min(c_int::MAX as u128) as c_int,
    }
}

unsafe fn push(ctx: *mut c_void, e: Event) {
    (*(ctx as *mut VecDeque<Event>)).push_back(e)
}

extern "C" fn on_send_fail(
    ctx: *mut c_void,
    ts: u64,
    dst: *const sys::bl_addr,
    cookie: u64,
    why: c_uint,
) {
    unsafe { push(ctx, Event::SendFail { ts, dst: Address(*dst), cookie, why }) }
}

extern "C" fn on_proc_gone(ctx: *mut c_void, who: *const sys::bl_addr, ts: u64, why: c_uint) {
    unsafe { push(ctx, Event::ProcGone { who: Address(*who), ts, why }) }
}

extern "C" fn on_peer(ctx: *mut c_void, who: *const sys::bl_addr, what: c_uint) {
    unsafe {
        let who = Address(*who);

        match what {
            1 => push(ctx, Event::Joined(who)),
            2 => push(ctx, Event::Back(who)),
            3 => push(ctx, Event::Lost(who)),
            _ => {}
        }
    }
}

type SendFn =
    unsafe extern "C" fn(*mut sys::bl_endpoint, *const sys::bl_msg, usize, c_uint) -> c_int;

impl Endpoint {
    /// An endpoint at this port; 0: at a free one.
    pub fn new(port: u16) -> Result<Self, Error> {
        Self::with_options(&sys::bl_options {
            port,
            ring_bytes: 0,
            send_buffer: 0,
            family: 0,
            socket_path: ptr::null(),
        })
    }

    /// An endpoint with all options.
    pub fn with_options(o: &sys::bl_options) -> Result<Self, Error> {
        let mut ep = ptr::null_mut();
        let rc = unsafe { sys::bl_init(&mut ep, o) };

        if rc != 0 {
            return Err(Error { errno: -rc, text: text_of(ptr::null()) });
        }
        let events: *mut VecDeque<Event> = Box::into_raw(Box::default());

        unsafe {
            sys::bl_on_send_fail(ep, Some(on_send_fail), events as *mut c_void);
            sys::bl_on_proc_gone(ep, Some(on_proc_gone), events as *mut c_void);
        }
        Ok(Endpoint { ep, events, raw: Vec::with_capacity(BATCH) })
    }

    /// Follow the peers: they are among the events, and sends to absent ones are EHOSTUNREACH.
    pub fn follow_peers(&mut self) {
        unsafe { sys::bl_on_peer(self.ep, Some(on_peer), self.events as *mut c_void) }
    }

    /// What has happened since the last call, in order.
    pub fn events(&mut self) -> Vec<Event> {
        unsafe { std::mem::take(&mut *self.events) }.into()
    }

    fn check(&self, rc: c_int) -> Result<u32, Error> {
        if rc < 0 {
            return Err(Error { errno: -rc, text: text_of(self.ep) });
        }
        Ok(rc as u32)
    }

    pub fn address(&self) -> Address {
        Address(unsafe { *sys::bl_self(self.ep) })
    }

    fn call(&mut self, f: SendFn, m: &[(Address, &[u8], u64)], flags: u32) -> Result<(), Error> {
        let vec: Vec<sys::bl_msg> = m
            .iter()
            .map(|(dst, data, cookie)| sys::bl_msg {
                dst: dst.0,
                data: data.as_ptr() as *const c_void,
                len: data.len().min(u32::MAX as usize) as u32,
                cookie: *cookie,
            })
            .collect();
        let rc = unsafe { f(self.ep, vec.as_ptr(), vec.len(), flags) };

        self.check(rc).map(|_| ())
    }

    /// Send one scattering, best effort: receiver, data and cookie of each message.
    pub fn send(&mut self, m: &[(Address, &[u8], u64)]) -> Result<(), Error> {
        self.call(sys::bl_send, m, 0)
    }

    /// Send one scattering reliably: all its receivers deliver it, or none does.
    pub fn send_reliable(&mut self, m: &[(Address, &[u8], u64)]) -> Result<(), Error> {
        self.call(sys::bl_send_reliable, m, 0)
    }

    /// The two sends with flags: [`MORE`].
    pub fn send_flags(
        &mut self,
        reliable: bool,
        m: &[(Address, &[u8], u64)],
        flags: u32,
    ) -> Result<(), Error> {
        self.call(if reliable { sys::bl_send_reliable } else { sys::bl_send }, m, flags)
    }

    pub fn flush(&mut self) -> Result<(), Error> {
        let rc = unsafe { sys::bl_flush(self.ep) };

        self.check(rc).map(|_| ())
    }

    fn take(&mut self, rc: c_int) -> Result<Vec<Delivery<'_>>, Error> {
        let n = self.check(rc)? as usize;

        unsafe { self.raw.set_len(n) };
        Ok(self
            .raw
            .iter()
            .map(|d| Delivery {
                ts: d.ts,
                src: Address(d.src),
                data: if d.len == 0 {
                    &[]
                } else {
                    unsafe { std::slice::from_raw_parts(d.data as *const u8, d.len as usize) }
                },
            })
            .collect())
    }

    /// Deliver messages of the best-effort stream; none after the timeout. None: no limit.
    pub fn recv(&mut self, timeout: Option<Duration>) -> Result<Vec<Delivery<'_>>, Error> {
        let rc = unsafe { sys::bl_recv(self.ep, self.raw.as_mut_ptr(), BATCH, ms(timeout)) };

        self.take(rc)
    }

    /// Deliver messages of the reliable stream; none after the timeout. None: no limit.
    pub fn recv_reliable(&mut self, timeout: Option<Duration>) -> Result<Vec<Delivery<'_>>, Error> {
        let rc =
            unsafe { sys::bl_recv_reliable(self.ep, self.raw.as_mut_ptr(), BATCH, ms(timeout)) };

        self.take(rc)
    }

    /// What is undecided, after recv_reliable() has returned ESTALE.
    pub fn recv_undecided(&mut self) -> Result<Vec<Delivery<'_>>, Error> {
        let rc = unsafe { sys::bl_recv_undecided(self.ep, self.raw.as_mut_ptr(), BATCH) };

        self.take(rc)
    }

    /// How far the endpoint came, after recv_reliable() has returned ESTALE.
    pub fn stale(&self) -> Result<sys::bl_stale, Error> {
        let mut s = sys::bl_stale {
            size: std::mem::size_of::<sys::bl_stale>() as u32,
            ..Default::default()
        };
        let rc = unsafe { sys::bl_get_stale(self.ep, &mut s) };

        self.check(rc).map(|_| s)
    }

    /// Do what is due. Returns the number of messages that can be delivered now.
    pub fn process(&mut self) -> Result<u32, Error> {
        let rc = unsafe { sys::bl_process(self.ep) };

        self.check(rc)
    }

    /// Wait for WAIT_*. Returns those that hold; 0 after the timeout.
    pub fn wait(&mut self, what: u32, timeout: Option<Duration>) -> Result<u32, Error> {
        let rc = unsafe { sys::bl_wait(self.ep, what, ms(timeout)) };

        self.check(rc)
    }

    /// Wait until a peer answers. ETIMEDOUT after the timeout; EAGAIN if it is 0.
    pub fn peer_wait(&mut self, peer: Address, timeout: Option<Duration>) -> Result<(), Error> {
        let rc = unsafe { sys::bl_peer_wait(self.ep, &peer.0, ms(timeout)) };

        self.check(rc).map(|_| ())
    }

    /// The present bus time, ns; 0 if the clock is void.
    pub fn timestamp(&self) -> u64 {
        unsafe { sys::bl_get_timestamp(self.ep) }
    }

    /// The clock with its bound; ETIME if it is void.
    pub fn bus_time(&self) -> Result<sys::bl_bus_time, Error> {
        let mut t = sys::bl_bus_time {
            size: std::mem::size_of::<sys::bl_bus_time>(),
            ..Default::default()
        };
        let rc = unsafe { sys::bl_get_bus_time(self.ep, &mut t) };

        self.check(rc).map(|_| t)
    }

    pub fn stats(&self) -> sys::bl_stats {
        let mut st = sys::bl_stats {
            size: std::mem::size_of::<sys::bl_stats>() as u32,
            ..Default::default()
        };

        unsafe { sys::bl_get_stats(self.ep, &mut st) };
        st
    }

    /// The destinations at which something is outstanding; see bl_get_pending(3).
    pub fn pending(&mut self) -> Vec<sys::bl_pending> {
        let mut v = Vec::with_capacity(16);

        loop {
            let n = unsafe { sys::bl_get_pending(self.ep, v.as_mut_ptr(), v.capacity()) } as usize;

            if n <= v.capacity() {
                unsafe { v.set_len(n) };
                return v;
            }
            v.reserve(n);
        }
    }

    /// Start the thread that works while the program does not call the library.
    pub fn helper_start(&mut self, bytes: u64) -> Result<(), Error> {
        let rc = unsafe { sys::bl_helper_start(self.ep, bytes) };

        self.check(rc).map(|_| ())
    }

    pub fn helper_stop(&mut self) {
        unsafe { sys::bl_helper_stop(self.ep) }
    }

    /// The endpoint, for functions of [`sys`].
    pub fn as_ptr(&self) -> *mut sys::bl_endpoint {
        self.ep
    }
}

/// For poll() and epoll: call [`Endpoint::process`] once before the first wait.
impl AsRawFd for Endpoint {
    fn as_raw_fd(&self) -> RawFd {
        unsafe { sys::bl_fd(self.ep) }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        unsafe {
            sys::bl_exit(self.ep);
            drop(Box::from_raw(self.events));
        }
    }
}
