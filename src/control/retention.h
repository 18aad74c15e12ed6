/* SPDX-License-Identifier: MIT
 * retention.h - HEAPPROF_KEEP: the last so many periodic files of this process stay, older ones are removed.
 * Callers: the dump, under its lock. Async-signal-safe. */
#ifndef HP_RETENTION_H
#define HP_RETENTION_H

/* A periodic file was written at this path. Removes the oldest one(s) beyond the limit, never a path that was written again
 * since (a template without %n), by this process or another. */
void hp_retention_written(const char *path);
/* A file that is to stay was written at this path, maybe in place of a periodic one. */
void hp_retention_kept(const char *path);
/* A forked child owns none of its parent's files. */
void hp_retention_forget(void);

#endif
