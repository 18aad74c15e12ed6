/* SPDX-License-Identifier: MIT
 * fuzz_view.c - libFuzzer: any profile into the page's data, into trend, and into the texts of serve.
 *
 * What must hold for a profile that was read: the data of the page has no byte that is not JSON's own (no control character,
 * no "<"); the page, a comparison with itself, a trend of it, the text and the metrics survive it. ASan and UBSan watch.
 *   clang -fsanitize=fuzzer,address,undefined ...; run with seeds/profile_reader as the corpus.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profile_reader.h"
#include "serve_text.h"
#include "trend_print.h"
#include "trend_series.h"
#include "view_data.h"
#include "view_html.h"

enum { READ_LIMIT_BYTES = 4 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static FILE *nowhere;

static void check_json(const char *text, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    if ((unsigned char)text[i] < 0x20 || text[i] == '<') abort();
}

static void make_page(const struct hp_profile *profile, const struct hp_profile *base, bool by_line,
                      const struct hp_trend *trend, struct hp_view_frames *frames) {
  struct hp_view_frames own;
  if (frames == NULL) hp_view_frames_init(&own, by_line);
  struct hp_view_input input = {.profile = profile,
                                .base = base,
                                .name = "a",
                                .base_name = "b",
                                .trend = trend,
                                .frames = frames != NULL ? frames : &own};
  struct hp_error error;
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  int result = hp_view_data_write(out, &input, &error);
  fclose(out);
  if (result == 0) {
    check_json(text, bytes);
    if (hp_view_html_write(nowhere, "t", text, bytes, &error) != 0) abort();
  }
  free(text);
  if (frames == NULL) hp_view_frames_free(&own);
}

/* Three times the same file, by way of a descriptor. */
static void follow(const uint8_t *data, size_t size, const struct hp_profile *profile) {
  char path[64];
  int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  struct hp_view_frames frames;
  struct hp_trend trend;
  struct hp_error error;
  hp_view_frames_init(&frames, false);
  if (hp_trend_build((char *[]){path, path, path}, 3, &(struct hp_trend_options){0}, &frames, &trend, &error) == 0) {
    hp_trend_print(nowhere, &trend, &frames, &(struct hp_trend_look){.whole_stacks = true, .terminal_width = 80});
    hp_trend_print_json(nowhere, &trend, &frames, 0);
    make_page(profile, profile, false, &trend, &frames);
    hp_trend_free(&trend);
  }
  hp_view_frames_free(&frames);
  close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct hp_profile *profile;
  struct hp_error error;
  if (nowhere == NULL) nowhere = fopen("/dev/null", "w");
  hp_profile_read_limit_set(READ_LIMIT_BYTES);
  if (hp_profile_read_memory("input", data, size, &profile, &error) != 0) return 0;
  make_page(profile, NULL, false, NULL, NULL);
  make_page(profile, profile, true, NULL, NULL);
  hp_serve_text_write(nowhere, profile);
  hp_serve_metrics_write(nowhere, profile);
  follow(data, size, profile);
  hp_profile_free(profile);
  return 0;
}
