// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! What test_bindings.c has each of two hosts run: bindings.py in Rust, as far as it applies.

use barline::{Address, Endpoint, Error, Event};
use std::time::Duration;

const COUNT: u64 = 100;
const EAGAIN: i32 = 11;
const ETIMEDOUT: i32 = 110;
const EHOSTUNREACH: i32 = 113;

fn refused(ep: &mut Endpoint, absent: Address) -> Result<(), Error> {
    for _ in 0..50 {
        let e = ep.send_reliable(&[(absent, b"x", 0)]).unwrap_err();

        assert_eq!(e.errno, EHOSTUNREACH, "{}", e);
        ep.process()?;
    }
    assert_eq!(ep.events(), []);
    let e = ep.peer_wait(absent, Some(Duration::from_millis(200))).unwrap_err();
    assert_eq!(e.errno, ETIMEDOUT, "{}", e);
    Ok(())
}

fn order(ep: &mut Endpoint, me: Address, other: Address) -> Result<u64, Error> {
    let (mut got, mut sent, mut hash) = (0, 0, 0xcbf29ce484222325u64);

    while got < 2 * COUNT {
        if sent < COUNT {
            let text = format!("{} {}", me, "x".repeat(sent as usize * 30));

            match ep.send_reliable(&[(me, text.as_bytes(), 0), (other, text.as_bytes(), sent)]) {
                Ok(()) => sent += 1,
                Err(e) if e.errno == EAGAIN => {
                    ep.wait(barline::WAIT_SEND_RELIABLE | barline::WAIT_RECV_RELIABLE, None)?;
                }
                Err(e) => return Err(e),
            }
        }
        let timeout = if sent < COUNT { Some(Duration::ZERO) } else { None };
        for d in ep.recv_reliable(timeout)? {
            assert!(d.data.starts_with(d.src.to_string().as_bytes()));
            for c in d.data {
                hash = (hash ^ u64::from(*c)).wrapping_mul(0x100000001b3);
            }
            hash ^= d.ts;
            got += 1;
        }
    }
    while ep.wait(barline::WAIT_ACKED, None)? == 0 {}
    Ok(hash)
}

fn size_of_target<T>(_: *const T) -> usize {
    std::mem::size_of::<T>()
}

macro_rules! layout {
    ($t:ident: $($f:ident)*) => {{
        let u = std::mem::MaybeUninit::<barline::sys::$t>::uninit();
        let p = u.as_ptr();

        println!("{} sizeof 0 {}", stringify!($t), size_of_target(p));
        $(
            let f = unsafe { std::ptr::addr_of!((*p).$f) };
            let at = f as usize - p as usize;
            println!("{} {} {} {}", stringify!($t), stringify!($f), at, size_of_target(f));
        )*
    }};
}

fn layouts() {
    layout!(bl_addr: ip port);
    layout!(bl_options: port ring_bytes send_buffer family socket_path);
    layout!(bl_bus_time: size bus_ns bound_ns mono_ns void_after_ns tai_offset_s state);
    layout!(bl_msg: dst data len cookie);
    layout!(bl_flow_hint: bytes deadline_us coflow flags reserved);
    layout!(bl_pending: dst frames messages cookie);
    layout!(bl_delivery: ts src data len);
    layout!(bl_stale: size undecided ts);
    layout!(bl_stats: size peers scatterings messages_sent frames_sent messages_delivered
        frames_received late_dropped duplicates lost_frames malformed send_failed again
        credits_sent credits_received probes_sent naks_sent barrier queued_frames sleeps wakeups
        reliable_delivered retransmits commit prepared_frames discarded recalls_sent recalled
        forwarded refused reconnects strangers senders memory memory_max no_room unanswered
        ring_full sent_ts);
}

fn main() -> Result<(), Error> {
    if std::env::args().nth(1).as_deref() == Some("--layout") {
        layouts();
        return Ok(());
    }
    let a: Vec<Address> =
        std::env::args().skip(1).map(|t| t.parse()).collect::<Result<_, _>>()?;
    let (me, other, absent) = (a[0], a[1], a[2]);
    let mut ep = Endpoint::new(me.port())?;

    assert_eq!(ep.address(), me);
    ep.follow_peers();
    refused(&mut ep, absent)?;
    ep.peer_wait(other, Some(Duration::from_secs(60)))?;
    ep.process()?;
    assert_eq!(ep.events(), [Event::Joined(other)]);
    println!("order {:016x}", order(&mut ep, me, other)?);
    assert_eq!(ep.stats().reliable_delivered, 2 * COUNT);
    while !ep.pending().is_empty() {
        ep.wait(barline::WAIT_CREDITED | barline::WAIT_RECV, Some(Duration::from_millis(10)))?;
    }
    assert!(ep.bus_time()?.bus_ns > 0 && ep.timestamp() > 0);
    ep.helper_start(0)?;
    ep.helper_stop();
    println!("done");
    Ok(())
}
