// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What test_bindings.c has each of two hosts run: bindings.py in C++, as far as it applies. */
#include "bindings/cpp/barline.hpp"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

using namespace std::chrono_literals;
using barline::address;

static void check(bool cond, const char *what)
{
	if (!cond)
		throw std::runtime_error(what);
}

static void refused(barline::endpoint &ep, const address &absent)
{
	int events = 0;

	ep.on_peer([&](const address &, bl_peer_event) { events++; });
	for (int i = 0; i < 50; i++) {
		try {
			ep.send_reliable({ { absent, "x" } });
			check(false, "a send to an absent peer was accepted");
		} catch (const std::system_error &e) {
			check(e.code().value() == EHOSTUNREACH, e.what());
		}
		ep.process();
	}
	check(!events, "an absent peer has joined");
	check(!ep.peer_wait(absent, 200ms) && !ep.peer_wait(absent, 0ms), "an absent peer answers");
}

static void raising(barline::endpoint &ep, const address &other)
{
	ep.on_peer([&](const address &who, bl_peer_event what) {
		check(who == other && what == BL_PEER_JOINED, "another event");
		throw std::logic_error("raised");
	});
	try {
		for (;;) {
			ep.peer_wait(other, 60s);
			ep.process();
		}
	} catch (const std::logic_error &e) {
	}
	ep.on_peer(nullptr);
}

static void order(barline::endpoint &ep, const address &me, const address &other)
{
	const unsigned count = 100;
	unsigned long long hash = 0xcbf29ce484222325ULL;
	unsigned got = 0, sent = 0;

	while (got < 2 * count) {
		std::string text = me.text() + std::string(sent * 30, 'x');

		if (sent < count) {
			if (ep.try_send_reliable({ { me, text }, { other, text, sent } }))
				sent++;
			else
				ep.wait(BL_WAIT_SEND_RELIABLE | BL_WAIT_RECV_RELIABLE);
		}
		for (const auto &d : ep.recv_reliable(sent < count ? 0ms : barline::forever)) {
			check(d.data.substr(0, d.src.text().size()) == d.src.text(), "wrong data");
			for (char c : d.data)
				hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
			hash ^= d.ts;
			got++;
		}
	}
	while (!ep.wait(BL_WAIT_ACKED))
		;
	std::printf("order %016llx\n", hash);
}

int main(int argc, char **argv)
try {
	check(argc == 4, "usage: bindings OWN OTHER ABSENT");
	const address me(argv[1]), other(argv[2]), absent(argv[3]);
	barline::endpoint first(me.port);
	barline::endpoint ep = std::move(first);

	check(ep.self() == me, "another address");
	refused(ep, absent);
	raising(ep, other);
	order(ep, me, other);
	check(ep.stats().reliable_delivered == 200, "counters");
	check(ep.bus_time().state != BL_BUS_VOID && ep.timestamp(), "clock");
	while (!ep.pending().empty())
		ep.wait(BL_WAIT_CREDITED | BL_WAIT_RECV, std::chrono::milliseconds(10));
	ep.helper_start();
	ep.helper_stop();
	std::printf("done\n");
	return 0;
} catch (const std::exception &e) {
	std::fprintf(stderr, "bindings: %s\n", e.what());
	return 1;
}
