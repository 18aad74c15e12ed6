/* SPDX-License-Identifier: MIT
 * thread_hooks.c - the program starts its first thread, or its main thread leaves by pthread_exit: control wants to know
 * (control/helper.h). Each is a look at a pointer and a tail call. (No header: nobody calls these; hooks: thread_hooks.h.) */
#include "thread_hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <threads.h>

#include "next_malloc.h"

void (*hp_hook_before_thread)(void);
void (*hp_hook_main_leaves)(void);

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static create_function *next_pthread_create;

static create_function *find_pthread_create(void) {
  create_function *next = hp_load_acquire(&next_pthread_create);
  if (next == NULL) {
    next = (create_function *)hp_next_find("pthread_create");
    hp_store_release(&next_pthread_create, next);
  }
  return next;
}

int hp_next_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
  create_function *next = find_pthread_create();
  return next == NULL ? EAGAIN : next(thread, attributes, start, argument);
}

HP_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
  if (hp_hook_before_thread != NULL) hp_hook_before_thread();
  create_function *next = find_pthread_create();
  return next == NULL ? EAGAIN : next(thread, attributes, start, argument);
}

HP_EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument) {
  static int (*next)(thrd_t *, thrd_start_t, void *);
  if (hp_hook_before_thread != NULL) hp_hook_before_thread();
  if (next == NULL) next = (int (*)(thrd_t *, thrd_start_t, void *))hp_next_find("thrd_create");
  return next == NULL ? thrd_error : next(thread, start, argument);
}

HP_EXPORT void pthread_exit(void *result) {
  static void (*next)(void *) __attribute__((noreturn));
  if (hp_hook_main_leaves != NULL) hp_hook_main_leaves();
  if (next == NULL) next = (__typeof__(next))hp_next_find("pthread_exit");
  next(result);
}

HP_EXPORT void thrd_exit(int result) {
  static void (*next)(int) __attribute__((noreturn));
  if (hp_hook_main_leaves != NULL) hp_hook_main_leaves();
  if (next == NULL) next = (__typeof__(next))hp_next_find("thrd_exit");
  next(result);
}
