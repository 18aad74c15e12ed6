/* SPDX-License-Identifier: MIT
 * dump.c - see dump.h. The state of the dump under way is static: the lock says there is one. */
#include "dump.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "books.h"
#include "comments.h"
#include "hot.h"
#include "live_table.h"
#include "lock.h"
#include "log.h"
#include "path_template.h"
#include "pprof.h"
#include "process.h"
#include "resident.h"
#include "retention.h"
#include "sampler.h"
#include "sink.h"
#include "stack_switch.h"
#include "symbols.h"
#include "unseen.h"

static struct hp_lock lock;
static struct hp_arena arena;      /* of the dump: the moment */
static struct hp_arena file_arena; /* of the file under way: what one of several takes, the next has again */
static char *stack_top;            /* of the dump's own stack, mapped at the first dump */
static struct hp_file_sink file;
static uint64_t next_number;
static struct hp_moment last_delta; /* all 0: since the start, whatever was reset since */
static struct hp_dump_stats stats;

void (*hp_dump_test_pause)(void);

static const char *const reason_words[HP_DUMP_REASONS] = {"signal", "period", "growth", "exit", "call"};

/* ---- the lock ---- */
bool hp_dump_try_lock(void) { return hp_lock_try(&lock); }

bool hp_dump_lock_for(int64_t nanos) {
  int64_t until = hp_process_exact_nanos() + nanos;
  while (!hp_lock_try(&lock)) {
    if (hp_process_exact_nanos() > until) return false;
    hp_sys_sleep_ms(1);
  }
  return true;
}

void hp_dump_unlock(void) {
  hp_lock_release(&lock);
  __atomic_thread_fence(__ATOMIC_SEQ_CST); /* the caller looks at what is wanted next: trigger.c, want() */
}

void hp_dump_get_stats(struct hp_dump_stats *out) { *out = stats; }

void hp_dump_after_fork(bool was_locked) {
  if (was_locked) {
    arena = file_arena = (struct hp_arena){0}; /* the chunks may be half linked; they are the parent's scratch */
    hp_symbols_forget();
    hp_file_sink_forget(&file);
  }
  lock.word = 0;
  next_number = 0;
  last_delta = hp_moment_now();
  stats = (struct hp_dump_stats){0};
  hp_retention_forget();
}

/* ---- one file ---- */
struct job {
  enum hp_dump_reason reason;
  const char *path_template;
  struct hp_reading reading;
  struct hp_moment moment;
  uint64_t number;
  int result;
};

static void say_failure(const char *path, int error, const char *fault) {
  const char *text = fault != NULL ? fault : hp_log_errno_text(error);
  if (text != NULL) {
    hp_log(HP_LOG_ERROR, "failed to write heap profile: %s: %s", path, text);
  } else {
    hp_log(HP_LOG_ERROR, "failed to write heap profile: %s: error %d", path, -error);
  }
}

static int encode(const struct job *job, enum hp_profile_kind kind, const char **out_fault) {
  struct hp_snapshot snapshot = {.kind = kind, .period_bytes = (int64_t)hp_sampler_rate_last()};
  const struct hp_reading *reading = &job->reading;
  struct hp_reading peak;
  struct hp_moment moment = job->moment;
  if (kind == HP_KIND_PEAK) {
    int result = hp_books_read_peak(&peak, &file_arena, &moment);
    if (result != 0) return result;
    reading = &peak;
  }
  struct hp_moment start =
      kind != HP_KIND_DELTA ? hp_process.alloc_start : (last_delta.wall_nanos != 0 ? last_delta : hp_process.start);
  snapshot.time_nanos = moment.wall_nanos;
  snapshot.duration_nanos = hp_moment_between(start, moment);
  int result = hp_books_rows(reading, kind, &file_arena, &snapshot.rows, &snapshot.row_count);
  if (result != 0) return result;
  bool is_past = moment.wall_nanos != job->moment.wall_nanos;
  snapshot.comment_count = hp_comments_make(reading, kind == HP_KIND_PEAK, is_past, &file_arena, &snapshot.comments);
  const struct hp_pprof_options options = {.with_symbols = hp_process.config.symbols,
                                           .max_depth = hp_process.config.max_depth,
                                           .executable = hp_process_executable()};
  return hp_pprof_encode(&snapshot, &options, &file_arena, &file.base, out_fault);
}

static bool is_asked_for(enum hp_profile_kind kind) {
  return kind == HP_KIND_PEAK ? hp_process.config.peak : (hp_process.config.kinds >> kind & 1) != 0;
}

/* What tells the files of one dump apart; NULL: there is only this one. The peak's says it always, it may be of another time. */
static const char *word_in_path(enum hp_profile_kind kind) {
  if (kind == HP_KIND_PEAK) return "peak";
  return __builtin_popcount(hp_process.config.kinds) == 1 ? NULL : hp_config_kind_words[kind];
}

static int write_kind(const struct job *job, enum hp_profile_kind kind) {
  static char path[HP_PATH_MAX];
  const struct hp_path_facts facts = {.directory = hp_process.directory,
                                      .executable = hp_process_executable_name(),
                                      .pid = hp_process.pid,
                                      .dump_number = job->number,
                                      .unix_seconds = job->moment.wall_nanos / 1000000000};
  const char *fault = NULL;
  int result = hp_path_expand(job->path_template, &facts, word_in_path(kind), path, sizeof path);
  if (result != 0) {
    const char *what =
        result == -ENOENT ? "the directory the process was started in is gone, or its name is too long" : job->path_template;
    say_failure(what, result, NULL);
    return result;
  }
  result = hp_file_sink_open(&file, path);
  if (result == 0) {
    result = encode(job, kind, &fault);
    if (result == 0) {
      result = hp_file_sink_commit(&file);
    } else {
      hp_file_sink_abort(&file);
    }
  }
  if (result != 0) {
    say_failure(path, result, fault);
    return result;
  }
  hp_log(HP_LOG_INFO, "heap profile written: %s (%s, %llu bytes)", path, reason_words[job->reason],
         (unsigned long long)file.bytes_written);
  if (job->reason == HP_DUMP_PERIODIC) {
    hp_retention_written(path);
  } else {
    hp_retention_kept(path);
  }
  return 0;
}

/* Level info: what is in the comments too. */
static void say_losses(void) {
  char line[256];
  struct hp_text text;
  hp_text_init(&text, line, sizeof line);
  if (hp_comments_losses(&text)) hp_log(HP_LOG_INFO, "lost so far:%s", line);
}

/* ---- all files of a dump ---- */
static void write_all(void *argument) {
  struct job *job = argument;
  struct hp_resident resident; /* what is resident of the heap was allocated before, hence is in the books */
  bool has_resident = hp_resident_read(&resident);
  job->moment = hp_moment_now();
  job->result = hp_books_read(&job->reading, &arena);
  if (job->result != 0) {
    say_failure(job->path_template, job->result, NULL);
    return;
  }
  hp_unseen_look(&job->reading, has_resident ? &resident : NULL);
  if (hp_dump_test_pause != NULL) hp_dump_test_pause();
  for (enum hp_profile_kind kind = 0; kind < HP_KINDS; kind++) {
    if (!is_asked_for(kind)) continue;
    hp_arena_reset(&file_arena);
    int result = write_kind(job, kind);
    if (job->result == 0) job->result = result;
    if (result == 0 && kind == HP_KIND_DELTA) {
      hp_books_delta_done(&job->reading);
      last_delta = job->moment;
    }
  }
}

static void count_time(int64_t nanos) {
  uint64_t n = nanos > 0 ? (uint64_t)nanos : 0;
  if (stats.written == 0 || n < stats.nanos_min) stats.nanos_min = n;
  if (n > stats.nanos_max) stats.nanos_max = n;
  stats.nanos_total += n;
  stats.written++;
}

/* All signals stay out meanwhile; SIGXFSZ, which the kernel sends when RLIMIT_FSIZE stops a write, is taken back. */
int hp_dump_write(enum hp_dump_reason reason, const char *path_template) {
  const uint64_t all = HP_SYS_SIGNALS_TO_BLOCK, xfsz = (uint64_t)1 << (SIGXFSZ - 1);
  uint64_t old = 0, pending = 0;
  hp_sys_sigprocmask(SIG_SETMASK, &all, &old);
  hp_syscall2(SYS_rt_sigpending, &pending, 8);
  int64_t begin = hp_process_exact_nanos();
  struct job job = {.reason = reason,
                    .path_template = path_template != NULL ? path_template : hp_process.config.out_template,
                    .number = next_number};
  next_number++;
  if (stack_top == NULL) {
    stack_top = hp_stack_map();
    hp_process.pid = hp_sys_getpid(); /* a raw fork (fork.h) that came before there was anything to know it by */
  }
  if (stack_top != NULL) {
    hp_stack_call(stack_top, write_all, &job);
  } else { /* a handler's own stack may be 8 KiB */
    job.result = -ENOMEM;
    say_failure(job.path_template, job.result, NULL);
  }
  hp_live_table_reclaim((uint64_t)(begin / 1000000000));
  if (reason != HP_DUMP_EXIT) { /* the process is about to give back everything */
    hp_arena_reset(&file_arena);
    hp_arena_reset(&arena);
  }
  if (job.result == 0) {
    count_time(hp_process_exact_nanos() - begin);
  } else {
    stats.failed++;
    if (job.result == -EFBIG && (pending & xfsz) == 0) {
      const struct timespec zero = {0, 0};
      hp_syscall4(SYS_rt_sigtimedwait, &xfsz, NULL, &zero, 8);
    }
  }
  say_losses();
  hp_sys_sigprocmask(SIG_SETMASK, &old, NULL);
  return job.result;
}
