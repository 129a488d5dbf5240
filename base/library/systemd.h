/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libsystemd, loaded when it is first used: see library.h. Daemons use it for their event loop;
 * a command that only looks does not need it, nor libgcrypt and the compressors behind it.
 */
#ifndef BARLINE_BASE_LIBRARY_SYSTEMD_H
#define BARLINE_BASE_LIBRARY_SYSTEMD_H

#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <systemd/sd-journal.h>

#include "base/library/library.h"

#ifndef BL_LIBRARIES_LINKED
/* clang-format off */
#define sd_event_add_defer BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_add_defer)
#define sd_event_add_io BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_add_io)
#define sd_event_add_signal BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_add_signal)
#define sd_event_add_time BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_add_time)
#define sd_event_add_time_relative BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_add_time_relative)
#define sd_event_dispatch BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_dispatch)
#define sd_event_get_fd BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_get_fd)
#define sd_event_new BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_new)
#define sd_event_now BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_now)
#define sd_event_prepare BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_prepare)
#define sd_event_ref BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_ref)
#define sd_event_run BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_run)
#define sd_event_set_watchdog BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_set_watchdog)
#define sd_event_source_disable_unref BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_source_disable_unref)
#define sd_event_source_get_event BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_source_get_event)
#define sd_event_source_get_io_fd BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_source_get_io_fd)
#define sd_event_source_set_enabled BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_source_set_enabled)
#define sd_event_source_set_io_events BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_source_set_io_events)
#define sd_event_source_set_time BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_source_set_time)
#define sd_event_source_set_time_relative \
	BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_source_set_time_relative)
#define sd_event_unref BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_unref)
#define sd_event_wait BL_LOADED(BL_LIBRARY_SYSTEMD, sd_event_wait)
#define sd_journal_print_with_location BL_LOADED(BL_LIBRARY_SYSTEMD, sd_journal_print_with_location)
#define sd_journal_sendv_with_location BL_LOADED(BL_LIBRARY_SYSTEMD, sd_journal_sendv_with_location)
#define sd_notify BL_LOADED(BL_LIBRARY_SYSTEMD, sd_notify)
#define sd_notifyf BL_LOADED(BL_LIBRARY_SYSTEMD, sd_notifyf)
/* clang-format on */
#endif

#endif
