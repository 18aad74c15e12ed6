/* SPDX-License-Identifier: MIT
 * Calls everything in the libraries given, and allocates a little itself (see alpha.cc). */
#include <stdlib.h>

void alpha_all(void);
void beta_all(void);
#ifdef WITH_RUST
void rusty_all(void);
#endif

static void *volatile kept;

static __attribute__((noinline)) void main_static(void) { kept = malloc(4001); } /* @ main_static 4001 */

int main(void) {
  alpha_all();
  beta_all();
#ifdef WITH_RUST
  rusty_all();
#endif
  main_static();
  kept = malloc(4002); /* @ main 4002 */
  return 0;
}
