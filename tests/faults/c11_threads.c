/* SPDX-License-Identifier: MIT
 * c11_threads.c - claim: threads made by thrd_create are as any, the main thread may leave by thrd_exit, and the exit handlers run in the
 * program's last thread. With "limited" the program may have only so many threads, and gets them all (as another user, since root has
 * no limit; skipped, 77, without the right). */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <threads.h>
#include <unistd.h>

enum { THREADS = 5 };

static mtx_t lock;
static cnd_t all_there;
static int there, last_thread;
static pthread_t main_thread;

static int meet(void *number) {
  for (int i = 1; i < 300; i++) free(memset(malloc((size_t)i), 1, (size_t)i));
  mtx_lock(&lock);
  there++;
  cnd_broadcast(&all_there);
  while (there < THREADS) cnd_wait(&all_there, &lock);
  mtx_unlock(&lock);
  return *(int *)number * 3;
}

static int stay_last(void *unused) {
  (void)unused;
  if (pthread_join(main_thread, NULL) != 0) _exit(8); /* it has left */
  last_thread = gettid();
  return 0;
}

static void at_end(void) {
  if (gettid() != last_thread) _exit(7);
}

int main(int argc, char **argv) {
  thrd_t threads[THREADS], last;
  int numbers[THREADS];
  if (argc > 1 && strcmp(argv[1], "limited") == 0) {
    const struct rlimit limit = {THREADS + 1, THREADS + 1};
    const uid_t other_user =
        20000 + (uid_t)getpid() % 40000; /* the limit counts all of a user's: this one has nothing else */
    if (getuid() != 0) return 77;
    if (setgid(other_user) != 0 || setuid(other_user) != 0 || setrlimit(RLIMIT_NPROC, &limit) != 0) return 1;
  }
  mtx_init(&lock, mtx_plain);
  cnd_init(&all_there);
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i + 1;
    if (thrd_create(&threads[i], meet, &numbers[i]) != thrd_success) return 10 + i;
  }
  for (int i = 0; i < THREADS; i++) {
    int result = 0;
    if (thrd_join(threads[i], &result) != thrd_success || result != 3 * (i + 1)) return 2;
  }
  atexit(at_end);
  main_thread = pthread_self();
  if (thrd_create(&last, stay_last, NULL) != thrd_success) return 3;
  thrd_exit(0);
}
