/* SPDX-License-Identifier: MIT
 * fuzz_config.c - libFuzzer: any environment, and any HEAPPROF_OUT expanded.
 *   lines of the input   strings of the environment, up to 64 of them
 * What must hold: every field is in its range whatever was said, complaints name a variable, a path that was expanded is
 * absolute, ends inside its buffer, and has no control character that the template did not have.
 * Seeds: seeds/config.
 */
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "path_template.h"
#include "recorder.h"
#include "sampler.h"

enum { STRINGS_MAX = 64, ROOM = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
  if (!condition) abort();
}

static void complain(const char *variable, const char *value, const char *text) {
  require(strncmp(variable, "HEAPPROF_", 9) == 0 && value != NULL && text[0] != 0);
}

/* Cut at newlines; each string is a block of its own, so that the sanitizer sees one byte too far. */
static size_t cut(const uint8_t *data, size_t size, char *strings[STRINGS_MAX + 1]) {
  size_t count = 0;
  while (size != 0 && count < STRINGS_MAX) {
    const uint8_t *end = memchr(data, '\n', size);
    size_t length = end != NULL ? (size_t)(end - data) : size;
    strings[count] = malloc(length + 1);
    if (strings[count] == NULL) break;
    memcpy(strings[count], data, length);
    strings[count++][length] = 0;
    size_t used = length + (end != NULL);
    data += used;
    size -= used;
  }
  strings[count] = NULL;
  return count;
}

static void expand(const char *path_template, const char *kind) {
  struct hp_path_facts facts = {
      .directory = "/start", .executable = "../a\n.out", .pid = 42, .dump_number = 7, .unix_seconds = 1700000000};
  char *out = malloc(ROOM), escape = 0;
  if (out == NULL) return;
  if (hp_path_expand(path_template, &facts, kind, out, ROOM) == 0) {
    require(memchr(out, 0, ROOM) != NULL && out[0] == '/');
    require(strchr(path_template, '\n') != NULL || strchr(out, '\n') == NULL);
    if (kind != NULL) require(strstr(out, kind) != NULL);
  }
  if (hp_path_has_unknown_escape(path_template, &escape)) require(escape != 0);
  free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *strings[STRINGS_MAX + 1];
  size_t count = cut(data, size, strings);
  struct hp_config config;
  hp_config_read(&config, strings, complain);
  require(config.sample_rate_bytes <= HP_SAMPLE_RATE_MAX && config.kinds != 0 && config.max_depth >= 1);
  require(config.signal >= 0 && config.signal <= 64 && config.log_level <= HP_LOG_DEBUG && config.max_memory_bytes != 0);
  require(config.out_template != NULL && config.out_template[0] != 0);
  expand(config.out_template, NULL);
  expand(config.out_template, "delta");
  for (size_t i = 0; i < count; i++) {
    expand(strings[i], NULL);
    free(strings[i]);
  }
  return 0;
}
