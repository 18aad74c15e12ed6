/* SPDX-License-Identifier: MIT
 * path_template.h - HEAPPROF_OUT: %p pid, %n number of the dump, %e executable name, %h host name, %t Unix seconds, %%.
 * What %e and %h bring in cannot leave the template's directory: '/' and control characters become '_'. An unknown escape
 * and a lone % at the end stand for themselves. Async-signal-safe. */
#ifndef HP_PATH_TEMPLATE_H
#define HP_PATH_TEMPLATE_H

#include "compiler.h"

struct hp_path_facts {
  const char *directory;  /* the process's at its start: what a relative template is meant from; NULL: unknown */
  const char *executable; /* base name */
  int pid;
  uint64_t dump_number;
  int64_t unix_seconds;
};

/* Expand into out[0..capacity). kind: NULL, or a word put in before ".pb.gz" (appended when the name does not end so).
 * 0, -ENAMETOOLONG, or -ENOENT (relative, and the directory is unknown). */
int hp_path_expand(const char *path_template, const struct hp_path_facts *facts, const char *kind, char *out,
                   size_t capacity);

/* Does the template hold an escape that is not known? Then *out_escape is its letter. */
bool hp_path_has_unknown_escape(const char *path_template, char *out_escape);

#endif
