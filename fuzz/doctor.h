/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What doctor looks at: groups of checks, each check one line.  A new check
 * is a call of mmr_doctor_add() in the group where it belongs.
 */
#ifndef MMR_FUZZ_DOCTOR_H
#define MMR_FUZZ_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>

struct mmr_doctor {
	json_t *checks; /* array of {what, ok, text} */
};

void mmr_doctor_add(struct mmr_doctor *d, bool ok, const char *what,
		    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* First line of a small file into buf, "" when it cannot be read. */
const char *mmr_doctor_read(const char *path, char *buf, size_t n);

void mmr_doctor_machine(struct mmr_doctor *d); /* kernel, CPUs, memory */
void mmr_doctor_watch(struct mmr_doctor *d);   /* what evidence can be had */
void mmr_doctor_calls(struct mmr_doctor *d);   /* system calls and ops */
void mmr_doctor_calibration(struct mmr_doctor *d); /* is there a table */

/* Measures the usual operations (some seconds; the engine runs) and stores
 * the table.  0 or -errno with a sentence in why. */
int mmr_doctor_calibrate(char *why, size_t n);
/* The table, on standard output or into an array. */
void mmr_doctor_table(json_t *array);

#endif
