/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which peers can be reached, and what the application was told of that (bl_on_peer()). Only peers
 * are watched that the application has named; ask.c asks them.
 *
 * A peer is there when it has answered an OPEN with a WINDOW. A WINDOW that answers nothing is no
 * sign of life: it must repeat this endpoint's incarnation and one of its numbers, which begin
 * where nobody can guess. A peer is lost when one of the streams gives it up, or when its failure
 * is announced. Announcements alternate: whatever happens between two calls of the application is
 * told as one loss and one return, so there is at most one entry per peer in the list of news.
 *
 * Example: a replica of life 7 answers (JOINED), dies, and is found out (LOST). Its successor of
 * life 8 answers: JOINED, since it has nothing of what life 7 was sent. If life 7 had only been
 * stopped, its answer would be told as BACK.
 */
#ifndef BARLINE_LIB_PRESENCE_H
#define BARLINE_LIB_PRESENCE_H

#include "internal.h"

/* Watched peers up to this number are remembered however long nothing is exchanged with them. */
#define BL_WATCH_KEEP 4096u

/** bl_presence_watch - note from now on whether @p can be reached. No-op if it is watched. */
void bl_presence_watch(struct bl_endpoint *ep, struct bl_peer *p);

/** bl_presence_answered - @p has answered an OPEN. @life: its incarnation. */
void bl_presence_answered(struct bl_endpoint *ep, struct bl_peer *p, uint16_t life);

/** bl_presence_credited - @p has sent a CREDIT, so the best-effort stream reaches it again. */
void bl_presence_credited(struct bl_endpoint *ep, struct bl_peer *p);

/** bl_presence_lost - a stream has given @p up, or its failure was announced. */
void bl_presence_lost(struct bl_endpoint *ep, struct bl_peer *p, uint64_t mono);

/** bl_presence_ask - put @p into the list of those that are asked; the first OPEN is due @at. */
void bl_presence_ask(struct bl_endpoint *ep, struct bl_peer *p, uint64_t at);

/** bl_presence_rotate - put the first of the list to its end. The list is not empty. */
void bl_presence_rotate(struct bl_endpoint *ep);

/** bl_presence_stop - take @p out of that list. No-op if it is not in it. */
void bl_presence_stop(struct bl_endpoint *ep, struct bl_peer *p);

/**
 * bl_presence_heard - a frame of @p has come. A peer that is asked is asked again at once, since it
 * may have begun just now; so is a peer whose frame is of another life than the one that has
 * answered. A frame may be forged, so it decides nothing.
 * @life: incarnation of the sender in the frame; -1: it has none.
 */
void bl_presence_heard(struct bl_endpoint *ep, struct bl_peer *p, int life);

/** bl_presence_forget - @p is about to be freed. */
void bl_presence_forget(struct bl_endpoint *ep, struct bl_peer *p);

/** bl_presence_report - run the callbacks that are due, with the lock released. */
void bl_presence_report(struct bl_endpoint *ep);

#endif
