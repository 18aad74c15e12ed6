/* SPDX-License-Identifier: MIT
 * out_template.c - see out_template.h. The template is walked one path component at a time; a component without an escape is
 * taken as it is, one with an escape is matched against the entries of its folder.
 */
#include "out_template.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli_memory.h"

static const char default_name[] = "heapprof.%e.%p.%n.pb.gz";
static const char suffix[] = ".pb.gz";
static const char *const kinds[] = {"", ".full", ".heap", ".alloc", ".delta", ".peak"};

/* %e and %h match anything, so a match may have to try lengths; names are short, and this bounds templates made to be slow. */
enum { MATCH_STEPS_MAX = 100000 };

struct match {
  int64_t wanted_pid; /* 0: any */
  int64_t pid, number;
  unsigned steps;
};

char *hp_out_template_absolute(const char *text, const char *directory) {
  if (text == NULL || text[0] == '\0') text = default_name;
  size_t length = strlen(text);
  const char *name = text[length - 1] == '/' ? default_name : "";
  if (text[0] == '/') return hp_format("%s%s", text, name);
  char *escaped = hp_alloc(strlen(directory) * 2 + 1), *to = escaped;
  for (const char *from = directory; *from != '\0'; from++) {
    if (*from == '%') *to++ = '%';
    *to++ = *from;
  }
  *to = '\0';
  char *result = hp_format("%s/%s%s", strcmp(escaped, "/") == 0 ? "" : escaped, text, name);
  free(escaped);
  return result;
}

static bool matches(const char *pattern, const char *name, struct match *match);

/* A decimal number of at most 18 digits, all of its digits. */
static const char *skip_number(const char *name, int64_t *value) {
  const char *at = name;
  for (*value = 0; *at >= '0' && *at <= '9'; at++) {
    if (at - name >= 18) return NULL;
    *value = *value * 10 + (*at - '0');
  }
  return at == name ? NULL : at;
}

static bool matches_escape(char letter, const char *rest, const char *name, struct match *match) {
  int64_t value;
  const char *after;
  switch (letter) {
    case '%': return *name == '%' && matches(rest, name + 1, match);
    case 'p':
    case 'n':
    case 't':
      after = skip_number(name, &value);
      if (after == NULL || (letter == 'p' && match->wanted_pid != 0 && value != match->wanted_pid)) return false;
      if (!matches(rest, after, match)) return false;
      if (letter == 'p') match->pid = value;
      if (letter == 'n') match->number = value;
      return true;
    case 'e':
    case 'h':
      for (;; name++) {
        if (matches(rest, name, match)) return true;
        if (*name == '\0') return false;
      }
    default: /* unknown: stands for itself */ return name[0] == '%' && name[1] == letter && matches(rest, name + 2, match);
  }
}

static bool matches(const char *pattern, const char *name, struct match *match) {
  for (;; pattern++, name++) {
    if (match->steps++ > MATCH_STEPS_MAX) return false;
    if (pattern[0] == '%' && pattern[1] != '\0') return matches_escape(pattern[1], pattern + 2, name, match);
    if (*pattern != *name) return false;
    if (*pattern == '\0') return true;
  }
}

/* The last component, with each kind put in. */
static bool matches_file(const char *pattern, const char *name, struct match *match) {
  size_t length = strlen(pattern), ending = sizeof suffix - 1;
  bool has_suffix = length >= ending && strcmp(pattern + length - ending, suffix) == 0;
  size_t stem = has_suffix ? length - ending : length;
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
    char *with_kind = hp_format("%.*s%s%s", (int)stem, pattern, kinds[k], has_suffix ? suffix : "");
    *match = (struct match){match->wanted_pid, -1, -1, 0};
    bool found = matches(with_kind, name, match);
    free(with_kind);
    if (found) return true;
  }
  return false;
}

static void add_file(const char *path, const struct match *match, struct hp_out_list *list) {
  struct stat status;
  if (lstat(path, &status) != 0 || !S_ISREG(status.st_mode)) return;
  hp_array_reserve(&list->files, &list->capacity, list->count + 1, sizeof *list->files);
  list->files[list->count++] = (struct hp_out_file){hp_strdup(path), status, match->pid, match->number};
}

/* Entries of `folder` (an absolute path, ends in '/') that the rest of the template can be. */
static void list_folder(const char *folder, const char *rest, int64_t pid, struct hp_out_list *list) {
  while (*rest == '/') rest++;
  size_t length = strcspn(rest, "/");
  bool is_last = rest[length] == '\0';
  char *component = hp_format("%.*s", (int)length, rest);
  if (!is_last && strchr(component, '%') == NULL) {
    char *deeper = hp_format("%s%s/", folder, component);
    list_folder(deeper, rest + length, pid, list);
    free(deeper);
    free(component);
    return;
  }
  DIR *directory = opendir(folder);
  for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
    struct match match = {.wanted_pid = pid, .pid = -1, .number = -1};
    char *path = hp_format("%s%s%s", folder, entry->d_name, is_last ? "" : "/");
    if (is_last && matches_file(component, entry->d_name, &match))
      add_file(path, &match, list);
    else if (!is_last && entry->d_name[0] != '.' && matches(component, entry->d_name, &match))
      list_folder(path, rest + length, pid, list);
    free(path);
  }
  if (directory != NULL) closedir(directory);
  free(component);
}

void hp_out_template_list(const char *root, const char *template, int64_t pid, struct hp_out_list *list) {
  char *folder = hp_format("%s/", root);
  list_folder(folder, template, pid, list);
  free(folder);
}

int hp_out_list_has(const struct hp_out_list *list, const struct hp_out_file *file) {
  for (size_t i = 0; i < list->count; i++) {
    const struct stat *known = &list->files[i].status;
    if (known->st_ino == file->status.st_ino && known->st_mtim.tv_sec == file->status.st_mtim.tv_sec &&
        known->st_mtim.tv_nsec == file->status.st_mtim.tv_nsec && strcmp(list->files[i].path, file->path) == 0)
      return 1;
  }
  return 0;
}

void hp_out_list_free(struct hp_out_list *list) {
  for (size_t i = 0; i < list->count; i++) free(list->files[i].path);
  free(list->files);
  *list = (struct hp_out_list){0};
}

bool hp_out_is_peak(const char *path) {
  static const char ending[] = ".peak.pb.gz";
  size_t length = strlen(path);
  return length >= strlen(ending) && strcmp(path + length - strlen(ending), ending) == 0;
}
