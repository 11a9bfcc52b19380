/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of the area in which the child keeps what shared pages hold, and
 * puts down the first page that held something else (expect content).
 * child_content.c says how it works.
 */
#ifndef MMR_OPS_CONTENT_H
#define MMR_OPS_CONTENT_H

#include <stdatomic.h>
#include <stdint.h>

#define MMR_CONTENT_FILES 64
#define MMR_FILE_PAGES 1024 /* followed of a file */

/*
 * What a page holds, the low half of its word: zeros, nobody knows what, what
 * its file has (a private mapping that was not written), or a byte: that of the
 * last write, at `pos`, or all over it.
 */
#define MMR_HOLDS_ZERO 0u
#define MMR_HOLDS_UNKNOWN 1u
#define MMR_HOLDS_FILE 2u
#define MMR_HOLDS_BYTE 3u
#define MMR_HOLDS_SAME 4u /* never in a word: it stays */
#define MMR_HOLDS(byte, pos, all)                                              \
	(MMR_HOLDS_BYTE | ((all) ? 16u : 0u) | (uint32_t)(byte) << 5 |         \
	 (uint32_t)(pos) << 13)
#define MMR_HOLDS_KIND(v) ((v)&15u)
#define MMR_HOLDS_ALL(v) ((v)&16u)
#define MMR_HOLDS_VALUE(v) ((v) >> 5 & 255u)
#define MMR_HOLDS_POS(v) ((v) >> 13 & 0xffffu)

struct mmr_content_file {
	_Atomic uint32_t cut; /* counts truncations and holes: they may take
			       * private copies away */
	_Atomic uint32_t dead; /* it can be written without being followed */
	_Atomic uint64_t page[MMR_FILE_PAGES];
};

struct mmr_content {
	_Atomic uint32_t hit; /* 2: what follows is filled in */
	uint16_t stat; /* the statement that read it */
	uint32_t thread_slot;
	uint64_t addr; /* of the page */
	uint32_t value; /* MMR_HOLDS_*: what it should have held */
	_Atomic uint64_t compared; /* pages whose content was known */
	uint64_t diff; /* bits of a word, over all that was compared */
	/* Of the round. */
	_Atomic uint32_t off; /* something was done that is not followed */
	_Atomic uint32_t places, files, bytes;
	struct mmr_content_file file[MMR_CONTENT_FILES];
};

#endif
