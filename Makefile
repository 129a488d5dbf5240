# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
#   make run     install what is missing, build, raise an 8-host rack, show it at work (as root)
#   make test    install what is missing, build, run every test (as root)
#   make         build only
#
#   make bench | soak | soak-fair | fuzz | model | mutants | test-kernels | install | clean

SHELL	   := /bin/bash
CC	   ?= gcc
CLANG	   ?= clang-16
FUZZ_CLANG ?= clang-14
BPFTOOL	   ?= bpftool
B	   := build
VERSION	   := 0.2.0
PREFIX	   ?= /usr/local
LIBDIR	   ?= $(PREFIX)/lib
SOMAJOR	   := 0

# what a fresh Debian 12 lacks, by what it is needed for
PKGS_BUILD := gcc make pkg-config clang-16 libbpf-dev bpftool linux-libc-dev libelf-dev zlib1g-dev libyaml-dev libsystemd-dev libjansson-dev libck-dev \
	      libcurl4-gnutls-dev libgnutls28-dev libsqlite3-dev libprotobuf-c-dev protobuf-c-compiler
PKGS_RUN   := iproute2 ethtool procps gnuplot-nox
PKGS_APPS  := iperf3 memcached
PKGS_TEST  := etcd-server spin libcmocka-dev clang-14 libclang-rt-14-dev libasan8 libubsan1 libtsan2 $(PKGS_APPS)
PKGS_BENCH := corosync libcpg-dev jq bsdextrautils $(PKGS_APPS)
PKGS_VM	   := qemu-system-x86 busybox-static dash cpio kmod xz-utils

WARN	:= -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wshadow -Wno-unused-parameter -Wno-missing-field-initializers
CFLAGS	?= -O2 -g
ALL_CFLAGS := -std=gnu11 $(WARN) $(CFLAGS) -fno-strict-aliasing -D_GNU_SOURCE -DBARLINE_VERSION='"$(VERSION)"' -I. -I$(B)
# what a test or what it tests does not set has a value that nobody takes for a good one, not what happened to be there
PATTERN := -ftrivial-auto-var-init=pattern
SAN	:= $(PATTERN) -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
BPF_CFLAGS := -O2 -g -Wall -Wextra -Wno-unused-parameter -target bpf -mcpu=v3 -I. -I/usr/include/$(shell $(CC) -print-multiarch 2>/dev/null || echo x86_64-linux-gnu)
NODE_LIBS := -lbpf -lelf -lz -lyaml -lsystemd -lgnutls -lprotobuf-c -lpthread -lm
# TLS by GnuTLS, in libcurl too: its LGPL goes with both of our licences; OpenSSL's Apache-2.0 does not go with GPL-2.0-only
CTL_LIBS  := -lcurl -lsqlite3 -lgnutls -lprotobuf-c -ljansson -lsystemd
CLI_LIBS  := $(CTL_LIBS) $(NODE_LIBS)

# each compiler writes down which headers a target was made of; generated ones have to be there before it first runs
DEPS	 = -MMD -MP -MF $@.d -MT $@
SKELS	 := $(B)/switch.skel.h $(B)/host.skel.h $(B)/pacer.skel.h $(B)/pass.skel.h $(B)/loss.skel.h
PROTO_H	 := $(B)/proto/ctl.pb-c.h
# sources of a room and of the rooms in it
sources	 = $(sort $(wildcard $(foreach d,$(1),$(d)/*.c $(d)/*/*.c)))
BASE_SRC := $(call sources,base)
LIB_SRC	 := $(call sources,lib)
NODE_SRC := $(BASE_SRC) $(call sources,proto) $(filter-out loader/barlined.c,$(call sources,loader))
ARB_SRC	 := $(call sources,arbiter)
CTL_SRC	 := $(call sources,controller)
LAB_SRC	 := $(call sources,lab)
CLI_SRC	 := $(call sources,cli) $(LAB_SRC) $(wildcard bench/*/*.c)
UNIT_SRC := $(wildcard tests/unit/test_*.c)
PROG_SRC := $(wildcard tests/prog/test_*.c)
NET_SRC	 := $(wildcard tests/net/test_*.c)
UNIT_BIN := $(UNIT_SRC:%.c=$(B)/%)
PROG_BIN := $(PROG_SRC:%.c=$(B)/%)
NET_BIN	 := $(NET_SRC:%.c=$(B)/%)

.DELETE_ON_ERROR:
.SECONDARY: $(SKELS) $(SKELS:.skel.h=.bpf.o) $(PROTO_H) $(PROTO_H:.h=.c)
.PHONY: all lib tests run test model mutants bench soak soak-fair soak-kills fuzz test-kernels install clean deps-build deps-run deps-test deps-bench deps-vm root

all: $(B)/barline $(B)/barlined $(B)/libbarline.a $(B)/libbarline.so $(B)/barline.pc

bpf_object = $(CLANG) $(BPF_CFLAGS) $(DEPS) -c $< -o $@
$(B)/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	$(bpf_object)

$(B)/switch.bpf.o: bpf/switch/switch.bpf.c
	@mkdir -p $(@D)
	$(bpf_object)

$(B)/host.bpf.o: bpf/host/host.bpf.c
	@mkdir -p $(@D)
	$(bpf_object)

$(B)/%.skel.h: $(B)/%.bpf.o
	$(BPFTOOL) gen skeleton $< name bl_$* > $@

# what agents and controller say to each other; generated, never committed
$(PROTO_H:.h=.c): proto/ctl.proto
	@mkdir -p $(@D)
	protoc-c --proto_path=proto --c_out=$(@D) $<

$(PROTO_H): $(PROTO_H:.h=.c) ;

$(B)/proto/ctl.pb-c.o: $(PROTO_H:.h=.c)
	$(CC) -std=gnu11 $(CFLAGS) -fPIC -I$(B)/proto -c $< -o $@

$(B)/%.o: %.c | $(SKELS) $(PROTO_H)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DEPS) -fPIC $(if $(filter lib/%,$<),-fvisibility=hidden) -c $< -o $@

$(B)/libbarline.a: $(LIB_SRC:%.c=$(B)/%.o)
	@rm -f $@
	ar rcs $@ $^

$(B)/libbarline.so: $(LIB_SRC:%.c=$(B)/%.o) lib/libbarline.map
	$(CC) $(CFLAGS) -shared -Wl,-soname,libbarline.so.$(SOMAJOR) -Wl,--version-script=lib/libbarline.map -o $@ $(filter %.o,$^)
	ln -sf libbarline.so $(B)/libbarline.so.$(SOMAJOR)

$(B)/libbarline-node.a: $(NODE_SRC:%.c=$(B)/%.o) $(B)/proto/ctl.pb-c.o
	@rm -f $@
	ar rcs $@ $^

$(B)/libbarline-arbiter.a: $(ARB_SRC:%.c=$(B)/%.o)
	@rm -f $@
	ar rcs $@ $^

$(B)/libbarline-controller.a: $(CTL_SRC:%.c=$(B)/%.o)
	@rm -f $@
	ar rcs $@ $^

$(B)/barlined: $(B)/loader/barlined.o $(B)/libbarline-node.a
	$(CC) $(CFLAGS) -o $@ $^ -ljansson $(NODE_LIBS)

$(B)/barline: $(CLI_SRC:%.c=$(B)/%.o) $(B)/libbarline-controller.a $(B)/libbarline-arbiter.a $(B)/libbarline-node.a $(B)/libbarline.a
	$(CC) $(CFLAGS) -o $@ $^ $(CLI_LIBS)

$(B)/barline.pc: lib/barline.pc.in
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' $< > $@

# ---- tests: found by pattern; a core is compiled natively with sanitizers ----

# library, arbiter and controller with sanitizers, once for all unit tests
$(B)/san/%.o: %.c | $(PROTO_H)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DEPS) $(SAN) -c $< -o $@

$(B)/san/lib.a: $(LIB_SRC:%.c=$(B)/san/%.o)
	@rm -f $@
	ar rcs $@ $^

$(B)/san/arbiter.a: $(ARB_SRC:%.c=$(B)/san/%.o)
	@rm -f $@
	ar rcs $@ $^

$(B)/san/controller.a: $(CTL_SRC:%.c=$(B)/san/%.o)
	@rm -f $@
	ar rcs $@ $^

# of the loader, the lab and the workloads, what unit tests link by itself
PART_SRC := $(BASE_SRC) proto/session.c loader/config.c $(addprefix loader/admission/,options.c admission_argp.c) \
	$(addprefix loader/order/,agent.c agent_watch.c clock.c) $(addprefix loader/load/,prio.c tx_cpu.c) \
	$(addprefix bench/fct/,fct_sizes.c fct_trace.c fct_coflow.c fct_fluid.c) \
	bench/kill/kill_flow.c bench/rack/bench_check.c
$(B)/san/parts.a: $(PART_SRC:%.c=$(B)/san/%.o) $(B)/proto/ctl.pb-c.o
	@rm -f $@
	ar rcs $@ $^

SAN_LIBS := $(addprefix $(B)/san/,controller.a arbiter.a lib.a parts.a)
# functions of other files that a unit test has its own of: the test defines __wrap_NAME()
wraps	  = $(WRAP_$(@F):%=-Wl,--wrap=%)
# WRAP_test_x := function ...
WRAP_test_options := bl_admission_defaults bl_admission_check bl_role_name
# these include a source
$(B)/tests/unit/test_admit: controller/admit.c
$(B)/tests/unit/test_agent_fences: loader/order/agent.c
$(B)/tests/unit/test_arb_comm: arbiter/comm.c
$(B)/tests/unit/test_bench_check: bench/rack/bench_check.c
$(B)/tests/unit/test_clock: loader/order/clock.c
$(B)/tests/unit/test_ctl_forward: controller/forward.c
$(B)/tests/unit/test_kill_flow: bench/kill/kill_flow.c
$(B)/tests/unit/test_tx_cpu: loader/load/tx_cpu.c
$(B)/tests/unit/test_prio: loader/load/prio.c loader/load/tx_cpu.c

# this runs the command
$(B)/tests/unit/test_options: | $(B)/barline

# -O1: some of the long tables take gcc a quarter of a minute with -O2
$(B)/tests/unit/%: tests/unit/%.c $(SAN_LIBS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DEPS) -O1 $(SAN) $(wraps) -o $@ $< -Wl,--start-group $(SAN_LIBS) -Wl,--end-group -lcmocka $(CTL_LIBS) -lyaml -lm

# two threads and one endpoint; -Wno-tsan: it does not know the fence in lib/recall.c, whose reader throws away what was written meanwhile
$(B)/tests/unit/test_lib_helper_tsan: tests/unit/test_lib_helper_tsan.c tests/unit/test_lib_helper.c $(LIB_SRC) $(wildcard lib/*.h tests/unit/*.h core/*.h core/*/*.h)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DEPS) -Wno-tsan -O1 -fsanitize=thread -o $@ $< $(LIB_SRC) -lcmocka

$(B)/tests/prog/%: tests/prog/%.c $(B)/libbarline-node.a | $(SKELS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DEPS) $(PATTERN) -o $@ $< $(B)/libbarline-node.a -lcmocka $(NODE_LIBS)

# the racks of the tests are the lab's: namespaces, links, addresses, members of etcd
$(B)/tests/net/lab.a: $(B)/lab/lab_net.o $(B)/lab/lab_etcd.o $(B)/lab/pass.o $(B)/bench/kill/kill_work.o $(B)/bench/kill/kill_judge.o
	@mkdir -p $(@D)
	@rm -f $@
	ar rcs $@ $^

$(B)/tests/net/%: tests/net/%.c $(B)/tests/net/lab.a $(B)/libbarline-controller.a $(B)/libbarline-arbiter.a $(B)/libbarline-node.a $(B)/libbarline.a | $(SKELS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DEPS) $(PATTERN) -o $@ $< $(B)/tests/net/lab.a $(B)/libbarline-controller.a $(B)/libbarline-arbiter.a $(B)/libbarline-node.a $(B)/libbarline.a -lcmocka $(CLI_LIBS)

FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_BIN := $(FUZZ_SRC:%.c=$(B)/%)
FUZZ_CC	 := $(FUZZ_CLANG) -std=gnu11 -O1 -g -D_GNU_SOURCE -I. -fsanitize=address,undefined -fno-sanitize-recover=undefined
$(B)/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(DEPS) -fsanitize=fuzzer-no-link -c $< -o $@

$(B)/fuzz/lib.a: $(LIB_SRC:%.c=$(B)/fuzz/%.o)
	@rm -f $@
	ar rcs $@ $^

$(B)/tests/fuzz/%: tests/fuzz/%.c $(B)/fuzz/lib.a
	@mkdir -p $(@D)
	$(FUZZ_CC) $(DEPS) -fsanitize=fuzzer -o $@ $< $(B)/fuzz/lib.a

tests: all $(UNIT_BIN) $(PROG_BIN) $(NET_BIN)

# ---- the commands ----

root:
	@[ "$$(id -u)" = 0 ] || { echo "barline: network namespaces and BPF need root; run this as root" >&2; exit 1; }

define install_missing
	@missing=$$(for p in $(1); do dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
	if [ -n "$$missing" ]; then echo "installing:" $$missing; apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing > $(B)-apt.log 2>&1 || \
		{ cat $(B)-apt.log; exit 1; }; rm -f $(B)-apt.log; fi
endef
deps-build: root
	$(call install_missing,$(PKGS_BUILD))
deps-run: root
	$(call install_missing,$(PKGS_BUILD) $(PKGS_RUN))
deps-test: root
	$(call install_missing,$(PKGS_BUILD) $(PKGS_RUN) $(PKGS_TEST))
deps-bench: root
	$(call install_missing,$(PKGS_BUILD) $(PKGS_RUN) $(PKGS_BENCH))
deps-vm: root
	$(call install_missing,$(PKGS_BUILD) $(PKGS_RUN) $(PKGS_TEST) $(PKGS_VM))

run: deps-run
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	$(B)/barline lab run rack --hosts 8 --out $(B)/run

test: deps-test
	@$(MAKE) --no-print-directory -s -j$$(nproc) tests $(FUZZ_BIN)
	bash tests/run.sh $(B)

fuzz: $(FUZZ_BIN)
	bash tests/fuzz/run.sh $(B)

# Debian's kernels in qemu: program tests on all, net tests in virtual time on 6.1 and 6.12 (tests/vm/run.sh has the settings)
test-kernels: deps-vm
	@$(MAKE) --no-print-directory -s -j$$(nproc) tests
	bash tests/vm/run.sh

bench: deps-bench
	@$(MAKE) --no-print-directory -s -j$$(nproc) all tests $(B)/bench/corosync_cpg $(B)/bench/switch_cost $(B)/bench/host_cost
	bash bench/run.sh $(B)

$(B)/bench/corosync_cpg: bench/corosync_cpg.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DEPS) -o $@ $< -lcpg

$(B)/bench/%.bpf.o: bench/%.bpf.c
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) $(DEPS) -c $< -o $@

$(B)/bench/%.skel.h: $(B)/bench/%.bpf.o
	$(BPFTOOL) gen skeleton $< name $* > $@

$(B)/bench/switch_cost: bench/switch_cost.c $(B)/bench/bench_switch.skel.h
	$(CC) $(ALL_CFLAGS) $(DEPS) -I$(B)/bench -o $@ $< $(NODE_LIBS)

$(B)/bench/host_cost: bench/host_cost.c $(B)/bench/bench_host.skel.h
	$(CC) $(ALL_CFLAGS) $(DEPS) -I$(B)/bench -o $@ $< $(NODE_LIBS)

# the promises of reliable 1Pipe, searched by spin; the quick cases are part of the unit tests
model: deps-test
	bash controller/model/run.sh all

# does a test fail when the code is wrong? tests/mutants/run.sh has the format of the lists.
# make mutants LISTS=cores,lib LEAST=90
mutants: deps-test
	bash tests/mutants/run.sh $(B) $(if $(LISTS),--list $(LISTS)) --least $(or $(LEAST),95)

soak: deps-test
	@$(MAKE) --no-print-directory -s all $(B)/tests/net/test_soak
	bash tests/net/soak.sh $(B)

# fair and weighted slots of so many random networks against an exact solver
GRAPHS ?= 1000
soak-fair: deps-test
	@$(MAKE) --no-print-directory -s $(B)/tests/unit/test_arb_maxmin
	BL_MAXMIN_GRAPHS=$(GRAPHS) $(if $(SEED),BL_SEED=$(SEED)) $(B)/tests/unit/test_arb_maxmin

# for hours: make soak-kills SECONDS=7200; or so many runs on each network: make soak-kills RUNS=2000;
# DRAWS=base,leave: what is drawn (default: all); SEED=0x...: the choices of a run that is repeated.
# The last line has the runs, by network and by what was drawn
SECONDS ?= 1800
# ASAN=1: with the library, the judge and the workers under the address sanitizer
KILLS = $(B)/tests/net$(if $(ASAN),-san)/test_kills
soak-kills: deps-test
	@$(MAKE) --no-print-directory -s all $(KILLS)
	ASAN_OPTIONS=detect_leaks=0:exitcode=99 $(KILLS) $(if $(RUNS),--runs $(RUNS),--seconds $(SECONDS)) $(if $(DRAWS),--draw $(DRAWS)) $(if $(SEED),--seed $(SEED))

# the workers and their judge are the lab's: in front of lab.a, which has them without the sanitizer
KILLS_SAN  := $(addprefix $(B)/san/bench/kill/,kill_work.o kill_judge.o)
KILLS_LIBS := $(B)/tests/net/lab.a $(B)/libbarline-controller.a $(B)/libbarline-arbiter.a $(B)/libbarline-node.a $(B)/san/lib.a $(B)/libbarline.a
$(B)/tests/net-san/test_kills: tests/net/test_kills.c $(KILLS_SAN) $(KILLS_LIBS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DEPS) -O1 $(SAN) -o $@ $< $(KILLS_SAN) $(KILLS_LIBS) -lcmocka $(CLI_LIBS)

install: all
	install -D -m 755 $(B)/barline $(DESTDIR)$(PREFIX)/sbin/barline
	install -D -m 755 $(B)/barlined $(DESTDIR)$(PREFIX)/sbin/barlined
	install -D -m 644 lib/barline.h $(DESTDIR)$(PREFIX)/include/barline.h
	install -D -m 644 $(B)/libbarline.a $(DESTDIR)$(LIBDIR)/libbarline.a
	install -D -m 755 $(B)/libbarline.so $(DESTDIR)$(LIBDIR)/libbarline.so.$(SOMAJOR)
	ln -sf libbarline.so.$(SOMAJOR) $(DESTDIR)$(LIBDIR)/libbarline.so
	install -D -m 644 $(B)/barline.pc $(DESTDIR)$(LIBDIR)/pkgconfig/barline.pc
	for g in latency queue memcached fct; do install -D -m 644 bench/$$g.gp $(DESTDIR)$(PREFIX)/share/barline/$$g.gp; done
	for m in docs/*.[138]; do install -D -m 644 $$m $(DESTDIR)$(PREFIX)/share/man/man$${m##*.}/$$(basename $$m); done

clean:
	rm -rf $(B) $(B)-apt.log

-include $(shell find $(B) -name '*.d' 2>/dev/null)
