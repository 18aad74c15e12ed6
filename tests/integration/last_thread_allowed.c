/* SPDX-License-Identifier: MIT
 * last_thread_allowed.c - claim: where only so many threads are allowed, the program gets as many as it would get alone: the
 * profiler's thread gives up its place. (Runs as another user, since root has no limit; skipped, 77, without the right.) */
#include <pthread.h>
#include <sys/resource.h>
#include <threads.h>
#include <unistd.h>

enum { THREADS = 5 };

static pthread_barrier_t barrier;
static void *wait_for_all(void *unused) {
  pthread_barrier_wait(&barrier);
  return unused;
}

int main(void) {
  pthread_t threads[THREADS];
  const struct rlimit limit = {THREADS + 1, THREADS + 1};
  const uid_t other_user = 20000 + (uid_t)getpid() % 40000; /* the limit counts all of a user's: this one has nothing else */
  if (getuid() != 0) return 77;
  if (setgid(other_user) != 0 || setuid(other_user) != 0 || setrlimit(RLIMIT_NPROC, &limit) != 0) return 1;
  pthread_barrier_init(&barrier, NULL, THREADS + 1);
  for (int i = 0; i < THREADS; i++) {
    if (pthread_create(&threads[i], NULL, wait_for_all, NULL) != 0) return 10 + i;
  }
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  return 0;
}
