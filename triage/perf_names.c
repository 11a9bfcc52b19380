// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names for sampled addresses: kernel ones from /proc/kallsyms, those of
 * mmrace-child from its own symbol table (it is static and not relocated).
 * Read after the last step only: it takes some 50 ms.
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ladder.h"
#include "perf.h"

#define NAMES_MAX 1024
#define EXE_MAX (16u << 20)

void mmr_perf_kernel_names(const uint64_t *ips, int n, char *names, size_t size)
{
	uint64_t best[NAMES_MAX] = {0}, at;
	char line[512], sym[128], kind;
	FILE *f;
	int i;

	if (n > NAMES_MAX)
		n = NAMES_MAX;
	f = fopen("/proc/kallsyms", "re");
	if (!f)
		return;
	/* Of the symbols below an address the nearest one is its name. */
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 " %c %127s", &at, &kind, sym) !=
			    3 ||
		    !at || !strchr("tTwW", kind))
			continue;
		for (i = 0; i < n; i++) {
			if (at > ips[i] || at <= best[i] ||
			    ips[i] - at > 1u << 20)
				continue;
			best[i] = at;
			snprintf(names + (size_t)i * size, size,
				 "%s+0x%" PRIx64, sym, ips[i] - at);
		}
	}
	fclose(f);
}

/* The section of that type in a 64-bit ELF file of len bytes, or NULL when
 * there is none or it does not lie within the file. */
static const Elf64_Shdr *section(const char *elf, size_t len, uint32_t type)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)(const void *)elf;
	const Elf64_Shdr *s;
	unsigned int i;

	if (len < sizeof(*e) || memcmp(e->e_ident, ELFMAG, SELFMAG) ||
	    e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_type != ET_EXEC ||
	    e->e_shentsize != sizeof(*s) || e->e_shoff > len ||
	    e->e_shnum > (len - e->e_shoff) / sizeof(*s))
		return NULL;
	s = (const Elf64_Shdr *)(const void *)(elf + e->e_shoff);
	for (i = 0; i < e->e_shnum; i++)
		if (s[i].sh_type == type && s[i].sh_offset <= len &&
		    s[i].sh_size <= len - s[i].sh_offset &&
		    s[i].sh_link < e->e_shnum)
			return &s[i];
	return NULL;
}

void mmr_perf_user_names(const char *exe, const uint64_t *ips, int n,
			 char *names, size_t size)
{
	const Elf64_Shdr *tab, *str;
	const Elf64_Sym *sym;
	size_t len, k;
	char *elf;
	FILE *f;
	int i;

	f = fopen(exe, "re");
	elf = f ? malloc(EXE_MAX) : NULL;
	if (!elf)
		goto out;
	len = fread(elf, 1, EXE_MAX, f);
	tab = section(elf, len, SHT_SYMTAB);
	if (!tab)
		goto out;
	str = (const Elf64_Shdr
		       *)(const void *)(elf +
					((const Elf64_Ehdr *)(const void *)elf)
						->e_shoff) +
	      tab->sh_link;
	if (str->sh_offset > len || str->sh_size > len - str->sh_offset)
		goto out;
	sym = (const Elf64_Sym *)(const void *)(elf + tab->sh_offset);
	for (k = 0; k < tab->sh_size / sizeof(*sym); k++) {
		if (ELF64_ST_TYPE(sym[k].st_info) != STT_FUNC ||
		    sym[k].st_name >= str->sh_size)
			continue;
		/* An address where a call returns to may lie behind the end
		 * of a function, which ends with it. */
		for (i = 0; i < n; i++)
			if (ips[i] - sym[k].st_value < sym[k].st_size ||
			    (ips[i] - sym[k].st_value == sym[k].st_size &&
			     sym[k].st_size && !names[(size_t)i * size]))
				snprintf(names + (size_t)i * size, size,
					 "%.*s+0x%" PRIx64,
					 (int)(str->sh_size - sym[k].st_name),
					 elf + str->sh_offset + sym[k].st_name,
					 ips[i] - sym[k].st_value);
	}
out:
	free(elf);
	if (f)
		fclose(f);
}
