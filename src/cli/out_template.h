/* SPDX-License-Identifier: MIT
 * out_template.h - which files on disk are profiles written by a HEAPPROF_OUT template.
 *
 * The library expands the template (%p %n %e %h %t %%); the command goes the other way: it lists the files whose names the
 * template can have made, of one process or of any.
 */
#ifndef HP_OUT_TEMPLATE_H
#define HP_OUT_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct hp_out_file {
  char *path;
  struct stat status;
  int64_t pid;    /* from %p, -1: the template has none */
  int64_t number; /* from %n, -1: the template has none */
};

struct hp_out_list {
  struct hp_out_file *files;
  size_t count, capacity;
};

/* The whole template, absolute: `text` (null or "": the default name), relative to `directory`, whose own '%' are kept as they
 * are; a folder (ending in '/') gets the default name. The caller frees it. */
char *hp_out_template_absolute(const char *text, const char *directory);

/* Adds every regular file under `root` ("" or e.g. "/proc/7/root", put before each path) that `template` (absolute) can have
 * produced. pid 0: any; else %p must be this. Also with a kind before .pb.gz (heap, alloc, delta, full, peak). */
void hp_out_template_list(const char *root, const char *template, int64_t pid, struct hp_out_list *list);

/* Whether the name is that of a file of the peak: written beside a dump, and not of its moment. */
bool hp_out_is_peak(const char *path);

/* True if the list has this very file: same path, inode and time of change. */
int hp_out_list_has(const struct hp_out_list *list, const struct hp_out_file *file);

void hp_out_list_free(struct hp_out_list *list);

#endif
