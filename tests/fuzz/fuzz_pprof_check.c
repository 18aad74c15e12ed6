/* SPDX-License-Identifier: MIT
 * fuzz_pprof_check.c - any bytes as an uncompressed profile: the checker answers, reads nothing beyond them, and what it
 * lets pass protobuf-c can unpack.
 *   clang -fsanitize=fuzzer,address,undefined -std=gnu11 -D_GNU_SOURCE -Isrc/base -Isrc/memory -Isrc/export -IPROTO \
 *     -Itests/export tests/fuzz/fuzz_pprof_check.c src/export/pprof_check.c src/export/utf8.c src/base/format.c \
 *     src/memory/arena.c tests/export/fake_memory.c PROTO/profile.pb-c.c -lprotobuf-c
 * PROTO: where the build put profile.pb-c.h. Seeds: gunzipped profiles, the first byte in front is the kind. */
#include <stdlib.h>

#include "pprof_check.h"
#include "profile.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  struct hp_arena arena = {0};
  const char *fault = NULL;
  enum hp_profile_kind kind = (enum hp_profile_kind)(data[0] % (HP_KIND_PEAK + 1));
  int status = hp_pprof_check_buffer(data + 1, size - 1, kind, &arena, &fault);
  if ((status == 0) != (fault[0] == 0)) abort();
  if (status == 0) {
    Perftools__Profiles__Profile *profile = perftools__profiles__profile__unpack(NULL, size - 1, data + 1);
    if (profile != NULL) {
      if (profile->n_mapping == 0 || profile->n_string_table == 0 || profile->string_table[0][0] != 0) abort();
      perftools__profiles__profile__free_unpacked(profile, NULL);
    }
  }
  hp_arena_reset(&arena);
  return 0;
}
