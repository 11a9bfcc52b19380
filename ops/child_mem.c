// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The four functions that a compiler may call in freestanding code.  The
 * empty asm keeps it from turning the loops into calls of themselves.
 */
#include <stddef.h>

void *memset(void *to, int v, size_t n);
void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
int memcmp(const void *a, const void *b, size_t n);

#define KEEP_LOOP() __asm__ __volatile__("" ::: "memory")

void *memset(void *to, int v, size_t n)
{
	unsigned char *p = to;

	while (n--) {
		*p++ = (unsigned char)v;
		KEEP_LOOP();
	}
	return to;
}

void *memcpy(void *to, const void *from, size_t n)
{
	const unsigned char *q = from;
	unsigned char *p = to;

	while (n--) {
		*p++ = *q++;
		KEEP_LOOP();
	}
	return to;
}

void *memmove(void *to, const void *from, size_t n)
{
	const unsigned char *q = from;
	unsigned char *p = to;

	if (p <= q)
		return memcpy(to, from, n);
	while (n--) {
		p[n] = q[n];
		KEEP_LOOP();
	}
	return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *p = a, *q = b;

	for (; n; n--, p++, q++) {
		if (*p != *q)
			return *p - *q;
		KEEP_LOOP();
	}
	return 0;
}
