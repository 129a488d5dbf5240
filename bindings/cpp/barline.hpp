/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libbarline for C++17: a thin layer over barline.h, which has the rules. It owns the endpoint,
 * turns errors into exceptions, and takes any callable as a callback.
 *
 *	barline::endpoint ep(61700);
 *
 *	ep.send({ { "10.0.0.1:61700", "x" }, { "10.0.0.2:61700", "y" } }); // one scattering
 *	for (const auto &d : ep.recv())					// in the total order
 *		std::cout << d.ts << ' ' << d.src.text() << ' ' << d.data << '\n';
 *
 * Errors are std::system_error with the errno and the library's sentence. What is no error for a
 * caller that waits is a result instead: try_send() is false for EAGAIN, peer_wait() for a timeout.
 * What is not here (bl_flow_hint(), struct bl_bus_clock) is used from barline.h directly.
 *
 * An exception of a callback is thrown by the call during which the callback ran; messages that
 * this call has delivered are returned by the next one.
 */
#ifndef BARLINE_HPP
#define BARLINE_HPP

#include <barline.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace barline
{

[[noreturn]] inline void fail(int rc, const bl_endpoint *ep)
{
	throw std::system_error(-rc, std::generic_category(), bl_strerror(ep));
}

/** The address of an endpoint. */
struct address : bl_addr {
	address() : bl_addr{}
	{
	}
	address(const bl_addr &a) : bl_addr(a)
	{
	}
	address(const char *text) : bl_addr{}
	{
		if (bl_addr_parse(this, text))
			throw std::system_error(EINVAL, std::generic_category(), text);
	}
	address(const std::string &text) : address(text.c_str())
	{
	}

	std::string text() const
	{
		char buf[64];

		return bl_addr_format(this, buf, sizeof(buf));
	}

	friend bool operator==(const address &a, const address &b)
	{
		return a.port == b.port && !std::memcmp(a.ip, b.ip, sizeof(a.ip));
	}
	friend bool operator!=(const address &a, const address &b)
	{
		return !(a == b);
	}
};

/** One message of a scattering. The data is copied by the call that sends it. */
struct message {
	address dst;
	std::string_view data;
	std::uint64_t cookie = 0;
};

/** One delivered message. The data is valid until the next call that receives from its stream. */
struct delivery {
	std::uint64_t ts;
	address src;
	std::string_view data;
};

/** How long to wait; forever: no limit. */
using timeout = std::chrono::milliseconds;
inline constexpr timeout forever{ -1 };

/** An endpoint of this host. It belongs to one thread at a time, and can be moved, not copied. */
class endpoint
{
      public:
	using send_fail_fn = std::function<void(std::uint64_t ts, const address &dst,
						std::uint64_t cookie, bl_fail_reason why)>;
	using proc_gone_fn =
		std::function<void(const address &who, std::uint64_t ts, bl_gone_reason why)>;
	using peer_fn = std::function<void(const address &who, bl_peer_event what)>;

	explicit endpoint(std::uint16_t port = 0) : endpoint(options(port))
	{
	}
	explicit endpoint(const bl_options &o) : s(std::make_unique<state>())
	{
		bl_endpoint *ep;

		if (int rc = bl_init(&ep, &o))
			fail(rc, nullptr);
		s->ep.reset(ep);
	}

	bl_endpoint *get() const
	{
		return s->ep.get();
	}
	address self() const
	{
		return *bl_self(get());
	}
	int fd() const
	{
		return bl_fd(get());
	}
	std::uint64_t timestamp() const
	{
		return bl_get_timestamp(get());
	}

	bl_stats stats() const
	{
		bl_stats st{};

		st.size = sizeof(st);
		bl_get_stats(get(), &st);
		return st;
	}

	/** The destinations at which something is outstanding; see bl_get_pending(3). */
	std::vector<bl_pending> pending()
	{
		std::vector<bl_pending> v(16);
		std::size_t n;

		while ((n = static_cast<std::size_t>(
				bl_get_pending(get(), v.data(), v.size()))) > v.size())
			v.resize(n);
		v.resize(n);
		return v;
	}

	/** The clock with its bound. @state is BL_BUS_VOID if it is void. */
	bl_bus_time bus_time() const
	{
		bl_bus_time t{};
		int rc;

		t.size = sizeof(t);
		while ((rc = bl_get_bus_time(get(), &t)) == -EAGAIN)
			;
		if (rc && rc != -ETIME)
			fail(rc, get());
		return t;
	}

	void send(const std::vector<message> &m, unsigned flags = 0)
	{
		check(call(bl_send, m, flags));
	}
	void send_reliable(const std::vector<message> &m, unsigned flags = 0)
	{
		check(call(bl_send_reliable, m, flags));
	}
	/** As send(), but false if the send buffer is full: wait(BL_WAIT_SEND). */
	bool try_send(const std::vector<message> &m, unsigned flags = 0)
	{
		return accepted(call(bl_send, m, flags));
	}
	bool try_send_reliable(const std::vector<message> &m, unsigned flags = 0)
	{
		return accepted(call(bl_send_reliable, m, flags));
	}
	void flush()
	{
		check(bl_flush(get()));
	}

	/** Deliver messages of the best-effort stream. Empty after the timeout. */
	const std::vector<delivery> &recv(timeout t = forever, std::size_t max = 64)
	{
		return receive(bl_recv, s->best_effort, t, max);
	}
	/** Deliver messages of the reliable stream. Empty after the timeout. */
	const std::vector<delivery> &recv_reliable(timeout t = forever, std::size_t max = 64)
	{
		return receive(bl_recv_reliable, s->reliable, t, max);
	}
	/** What is undecided, after recv_reliable() has thrown ESTALE. */
	const std::vector<delivery> &recv_undecided(std::size_t max = 64)
	{
		return receive([](bl_endpoint *ep, bl_delivery *d, std::size_t n,
				  int) { return bl_recv_undecided(ep, d, n); },
			       s->reliable, timeout(0), max);
	}
	bl_stale stale() const
	{
		bl_stale st{};

		st.size = sizeof(st);
		if (int rc = bl_get_stale(get(), &st))
			fail(rc, get());
		return st;
	}

	int process()
	{
		return check(bl_process(get()));
	}
	unsigned wait(unsigned what, timeout t = forever)
	{
		return static_cast<unsigned>(check(bl_wait(get(), what, ms(t))));
	}
	/** Wait until a peer answers. False after the timeout. */
	bool peer_wait(const address &peer, timeout t = forever)
	{
		int rc = bl_peer_wait(get(), &peer, ms(t));

		if (rc == -ETIMEDOUT || rc == -EAGAIN) {
			check(0);
			return false;
		}
		check(rc);
		return true;
	}

	void helper_start(std::uint64_t bytes = 0)
	{
		check(bl_helper_start(get(), bytes));
	}
	void helper_stop()
	{
		bl_helper_stop(get());
	}

	void on_send_fail(send_fail_fn fn)
	{
		s->send_fail = std::move(fn);
		bl_on_send_fail(get(), s->send_fail ? run_send_fail : nullptr, s.get());
	}
	/** A process has failed or left, with the reason. */
	void on_proc_gone(proc_gone_fn fn)
	{
		s->proc_gone = std::move(fn);
		bl_on_proc_gone(get(), s->proc_gone ? run_proc_gone : nullptr, s.get());
	}
	/** A peer has joined, is back, or is lost; sends to absent peers throw EHOSTUNREACH. */
	void on_peer(peer_fn fn)
	{
		s->peer = std::move(fn);
		bl_on_peer(get(), s->peer ? run_peer : nullptr, s.get());
	}

      private:
	struct close {
		void operator()(bl_endpoint *ep) const
		{
			bl_exit(ep);
		}
	};

	struct stream {
		std::vector<bl_delivery> raw;
		std::vector<delivery> out;
		bool kept = false; /* @out was delivered by a call that has thrown */
	};

	/* In one place, so that callbacks find it wherever the endpoint was moved to. */
	struct state {
		send_fail_fn send_fail;
		proc_gone_fn proc_gone;
		peer_fn peer;
		std::exception_ptr thrown;
		stream best_effort, reliable;
		std::vector<bl_msg> vec;
		std::unique_ptr<bl_endpoint, close> ep; /* last: it is closed first */

		template <class F> void guard(F f)
		{
			try {
				f();
			} catch (...) {
				if (!thrown)
					thrown = std::current_exception();
			}
		}
	};

	static void run_send_fail(void *ctx, std::uint64_t ts, const bl_addr *dst,
				  std::uint64_t cookie, bl_fail_reason why)
	{
		auto *st = static_cast<state *>(ctx);

		st->guard([&] { st->send_fail(ts, *dst, cookie, why); });
	}
	static void run_proc_gone(void *ctx, const bl_addr *who, std::uint64_t ts,
				  bl_gone_reason why)
	{
		auto *st = static_cast<state *>(ctx);

		st->guard([&] { st->proc_gone(*who, ts, why); });
	}
	static void run_peer(void *ctx, const bl_addr *who, bl_peer_event what)
	{
		auto *st = static_cast<state *>(ctx);

		st->guard([&] { st->peer(*who, what); });
	}

	static bl_options options(std::uint16_t port)
	{
		bl_options o{};

		o.port = port;
		return o;
	}

	/* INT_MAX ms are 24 days. */
	static int ms(timeout t)
	{
		return static_cast<int>(std::min<timeout::rep>(t.count(), INT_MAX));
	}

	int check(int rc)
	{
		if (s->thrown)
			std::rethrow_exception(std::exchange(s->thrown, nullptr));
		if (rc < 0)
			fail(rc, get());
		return rc;
	}

	bool accepted(int rc)
	{
		if (rc == -EAGAIN)
			return false;
		check(rc);
		return true;
	}

	template <class F> int call(F fn, const std::vector<message> &m, unsigned flags)
	{
		/* Taken away, since a callback may send, too. */
		std::vector<bl_msg> vec = std::move(s->vec);
		int rc;

		vec.clear();
		/* The library refuses a message of UINT32_MAX bytes. */
		for (const message &one : m)
			vec.push_back({ one.dst, one.data.data(),
					static_cast<std::uint32_t>(
						std::min<std::size_t>(one.data.size(), UINT32_MAX)),
					one.cookie });
		rc = fn(get(), vec.data(), vec.size(), flags);
		s->vec = std::move(vec);
		return rc;
	}

	template <class F>
	const std::vector<delivery> &receive(F fn, stream &st, timeout t, std::size_t max)
	{
		int rc;

		if (std::exchange(st.kept, false))
			return st.out;
		st.raw.resize(max);
		rc = fn(get(), st.raw.data(), max, ms(t));
		st.out.clear();
		for (int i = 0; i < rc; i++)
			st.out.push_back(
				{ st.raw[i].ts,
				  st.raw[i].src,
				  { static_cast<const char *>(st.raw[i].data), st.raw[i].len } });
		st.kept = s->thrown && rc > 0;
		check(rc);
		return st.out;
	}

	std::unique_ptr<state> s;
};

} // namespace barline

#endif
