// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! barline.h, declaration by declaration. A test compares the layouts with the C compiler's.
#![allow(non_camel_case_types, missing_docs)]

use std::os::raw::{c_char, c_int, c_uint, c_void};

#[repr(C)]
pub struct bl_endpoint {
    _private: [u8; 0],
}

#[repr(C)]
pub struct bl_bus_clock {
    _private: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct bl_addr {
    pub ip: [u8; 16],
    pub port: u16,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct bl_options {
    pub port: u16,
    pub ring_bytes: u32,
    pub send_buffer: u32,
    pub family: c_int,
    pub socket_path: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct bl_bus_time {
    pub size: usize,
    pub bus_ns: u64,
    pub bound_ns: u64,
    pub mono_ns: u64,
    pub void_after_ns: u64,
    pub tai_offset_s: i32,
    pub state: u32,
}

#[repr(C)]
pub struct bl_msg {
    pub dst: bl_addr,
    pub data: *const c_void,
    pub len: u32,
    pub cookie: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct bl_flow_hint {
    pub bytes: u64,
    pub deadline_us: u32,
    pub coflow: u32,
    pub flags: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct bl_pending {
    pub dst: bl_addr,
    pub frames: u32,
    pub messages: u32,
    pub cookie: u64,
}

#[repr(C)]
pub struct bl_delivery {
    pub ts: u64,
    pub src: bl_addr,
    pub data: *const c_void,
    pub len: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct bl_stale {
    pub size: u32,
    pub undecided: u32,
    pub ts: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct bl_stats {
    pub size: u32,
    pub peers: u32,
    pub scatterings: u64,
    pub messages_sent: u64,
    pub frames_sent: u64,
    pub messages_delivered: u64,
    pub frames_received: u64,
    pub late_dropped: u64,
    pub duplicates: u64,
    pub lost_frames: u64,
    pub malformed: u64,
    pub send_failed: u64,
    pub again: u64,
    pub credits_sent: u64,
    pub credits_received: u64,
    pub probes_sent: u64,
    pub naks_sent: u64,
    pub barrier: u64,
    pub queued_frames: u64,
    pub sleeps: u64,
    pub wakeups: u64,
    pub reliable_delivered: u64,
    pub retransmits: u64,
    pub commit: u64,
    pub prepared_frames: u64,
    pub discarded: u64,
    pub recalls_sent: u64,
    pub recalled: u64,
    pub forwarded: u64,
    pub refused: u64,
    pub reconnects: u64,
    pub strangers: u32,
    pub senders: u32,
    pub memory: u64,
    pub memory_max: u64,
    pub no_room: u64,
    pub unanswered: u64,
    pub ring_full: u64,
    pub sent_ts: u64,
}

pub type bl_send_fail_fn =
    Option<extern "C" fn(ctx: *mut c_void, ts: u64, dst: *const bl_addr, cookie: u64, why: c_uint)>;
pub type bl_proc_fail_fn = Option<extern "C" fn(ctx: *mut c_void, who: *const bl_addr, ts: u64)>;
pub type bl_proc_gone_fn =
    Option<extern "C" fn(ctx: *mut c_void, who: *const bl_addr, ts: u64, why: c_uint)>;
pub type bl_peer_fn = Option<extern "C" fn(ctx: *mut c_void, who: *const bl_addr, what: c_uint)>;

extern "C" {
    pub fn bl_addr_parse(a: *mut bl_addr, text: *const c_char) -> c_int;
    pub fn bl_addr_format(a: *const bl_addr, buf: *mut c_char, size: usize) -> *mut c_char;
    pub fn bl_init(ep: *mut *mut bl_endpoint, opt: *const bl_options) -> c_int;
    pub fn bl_exit(ep: *mut bl_endpoint);
    pub fn bl_self(ep: *const bl_endpoint) -> *const bl_addr;
    pub fn bl_get_timestamp(ep: *const bl_endpoint) -> u64;
    pub fn bl_get_bus_time(ep: *const bl_endpoint, t: *mut bl_bus_time) -> c_int;
    pub fn bl_bus_clock_open(c: *mut *mut bl_bus_clock, socket_path: *const c_char) -> c_int;
    pub fn bl_bus_clock_read(c: *const bl_bus_clock, t: *mut bl_bus_time) -> c_int;
    pub fn bl_bus_clock_close(c: *mut bl_bus_clock);
    pub fn bl_send(ep: *mut bl_endpoint, vec: *const bl_msg, n: usize, flags: c_uint) -> c_int;
    pub fn bl_send_reliable(
        ep: *mut bl_endpoint,
        vec: *const bl_msg,
        n: usize,
        flags: c_uint,
    ) -> c_int;
    pub fn bl_flush(ep: *mut bl_endpoint) -> c_int;
    pub fn bl_flow_hint(fd: c_int, hint: *const bl_flow_hint) -> c_int;
    pub fn bl_recv(ep: *mut bl_endpoint, out: *mut bl_delivery, max: usize, ms: c_int) -> c_int;
    pub fn bl_recv_reliable(
        ep: *mut bl_endpoint,
        out: *mut bl_delivery,
        max: usize,
        ms: c_int,
    ) -> c_int;
    pub fn bl_recv_undecided(ep: *mut bl_endpoint, out: *mut bl_delivery, max: usize) -> c_int;
    pub fn bl_get_stale(ep: *const bl_endpoint, s: *mut bl_stale) -> c_int;
    pub fn bl_fd(ep: *const bl_endpoint) -> c_int;
    pub fn bl_process(ep: *mut bl_endpoint) -> c_int;
    pub fn bl_wait(ep: *mut bl_endpoint, what: c_uint, ms: c_int) -> c_int;
    pub fn bl_peer_wait(ep: *mut bl_endpoint, peer: *const bl_addr, ms: c_int) -> c_int;
    pub fn bl_on_send_fail(ep: *mut bl_endpoint, f: bl_send_fail_fn, ctx: *mut c_void);
    pub fn bl_on_proc_fail(ep: *mut bl_endpoint, f: bl_proc_fail_fn, ctx: *mut c_void);
    pub fn bl_on_proc_gone(ep: *mut bl_endpoint, f: bl_proc_gone_fn, ctx: *mut c_void);
    pub fn bl_on_peer(ep: *mut bl_endpoint, f: bl_peer_fn, ctx: *mut c_void);
    pub fn bl_helper_start(ep: *mut bl_endpoint, bytes: u64) -> c_int;
    pub fn bl_helper_stop(ep: *mut bl_endpoint);
    pub fn bl_get_pending(ep: *mut bl_endpoint, out: *mut bl_pending, max: usize) -> c_int;
    pub fn bl_get_stats(ep: *const bl_endpoint, st: *mut bl_stats) -> c_int;
    pub fn bl_strerror(ep: *const bl_endpoint) -> *const c_char;
}
