/* SPDX-License-Identifier: MIT
 * symbol_module.c - see symbol_module.h.
 *
 *   units[]      (low, high) -> compilation unit        from every unit's own ranges: clang writes no .debug_aranges
 *   unit.functions[] (low, high) -> subprogram          built when the first address of a unit is asked for
 *   symbols[]    address -> ELF symbol                  built when DWARF has no answer for the first time
 * All three are sorted by low and searched from the nearest one below. Addresses are libdwfl's (file address plus bias).
 */
#include "symbol_module.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "address_ranges.h"
#include "cli_memory.h"
#include "id_map.h"
#include "path_clean.h"

enum { NESTING_MAX = 64, BUILD_ID_BYTES_MAX = 64, OVERLAPS_MAX = 64 };

struct unit {
  Dwarf_Die die;
  const char *folder; /* where the compiler ran; null unknown */
  struct hp_address_ranges functions;
  bool is_indexed;
};

struct symbol {
  GElf_Addr low, high; /* equal: it has no size */
  GElf_Addr reach;     /* without a size: the end of its section */
  const char *name;
  int rank; /* of several at one address the highest wins */
};

struct hp_symbol_module {
  Dwfl *dwfl;
  Dwfl_Callbacks callbacks;
  char *debug_path;
  Dwfl_Module *module;
  Elf *elf;
  GElf_Addr elf_bias;
  Dwarf *dwarf;
  Dwarf_Addr dwarf_bias;
  struct unit *units;
  size_t unit_count, unit_capacity;
  struct hp_address_ranges unit_ranges;
  struct symbol *symbols;
  size_t symbol_count, symbol_capacity;
  bool has_symbols;
  struct hp_segment segments[HP_SEGMENTS_MAX];
  size_t segment_count;
  struct hp_id_map qualified;  /* offset of a function's entry -> its name in texts */
  struct hp_id_map file_names; /* address of a name in the line table -> the same made absolute, in texts */
  char **texts;
  size_t text_count, text_capacity;
};

static void add_die_ranges(struct hp_address_ranges *list, Dwarf_Die *die, Dwarf_Off what) {
  Dwarf_Addr base, low, high;
  ptrdiff_t offset = 0;
  while ((offset = dwarf_ranges(die, offset, &base, &low, &high)) > 0)
    if (low != 0) hp_address_ranges_add(list, low, high, what); /* 0: a function the linker threw away */
}

static bool hex_equals(const char *hex, const unsigned char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    char byte[3];
    snprintf(byte, sizeof byte, "%02x", bytes[i]);
    if (hex[2 * i] != byte[0] || hex[2 * i] == '\0' || hex[2 * i + 1] != byte[1]) return false;
  }
  return hex[2 * count] == '\0';
}

static size_t hex_parse(const char *hex, unsigned char out[BUILD_ID_BYTES_MAX]) {
  size_t count = 0;
  for (; count < BUILD_ID_BYTES_MAX && hex[0] != '\0' && hex[1] != '\0'; hex += 2) {
    unsigned byte;
    if (sscanf(hex, "%2x", &byte) != 1) return 0;
    out[count++] = (unsigned char)byte;
  }
  return hex[0] == '\0' ? count : 0;
}

/* Either the file, or a module of that build id for libdwfl to find. */
static Dwfl_Module *report(struct hp_symbol_module *module, const char *path, const char *build_id) {
  dwfl_report_begin(module->dwfl);
  Dwfl_Module *reported = NULL;
  if (path != NULL) {
    reported = dwfl_report_elf(module->dwfl, path, path, -1, 0, true);
  } else {
    unsigned char id[BUILD_ID_BYTES_MAX];
    size_t length = hex_parse(build_id, id);
    if (length != 0) reported = dwfl_report_module(module->dwfl, "module", 0, (GElf_Addr)1 << 40);
    if (reported != NULL && dwfl_module_report_build_id(reported, id, length, 0) != 0) reported = NULL;
  }
  dwfl_report_end(module->dwfl, NULL, NULL);
  return reported;
}

static bool build_id_fits(Dwfl_Module *module, const char *build_id) {
  const unsigned char *bytes;
  GElf_Addr address;
  if (build_id[0] == '\0') return true;
  int count = dwfl_module_build_id(module, &bytes, &address);
  return count > 0 && hex_equals(build_id, bytes, (size_t)count);
}

static const char *compile_folder(Dwarf_Die *unit) {
  Dwarf_Attribute attribute;
  return dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
}

static void find_units(struct hp_symbol_module *module) {
  Dwarf_CU *unit = NULL;
  Dwarf_Die die, split;
  while (dwarf_get_units(module->dwarf, unit, &unit, NULL, NULL, &die, &split) == 0) {
    Dwarf_Die *main_die = dwarf_tag(&split) != DW_TAG_invalid ? &split : &die;
    if (dwarf_tag(main_die) != DW_TAG_compile_unit) continue;
    hp_array_reserve(&module->units, &module->unit_capacity, module->unit_count + 1, sizeof *module->units);
    const char *folder = compile_folder(main_die);
    if (folder == NULL) folder = compile_folder(&die); /* clang tells the skeleton of a split unit only */
    module->units[module->unit_count] = (struct unit){.die = *main_die, .folder = folder};
    add_die_ranges(&module->unit_ranges, &die, module->unit_count); /* a skeleton has the ranges of its split unit */
    module->unit_count++;
  }
  hp_address_ranges_sort(&module->unit_ranges);
}

struct hp_symbol_module *hp_symbol_module_open(const char *path, const char *build_id, const char *debug_path,
                                               const char **why) {
  struct stat status;
  *why = "no such file";
  if (path != NULL && (stat(path, &status) != 0 || !S_ISREG(status.st_mode))) return NULL;
  struct hp_symbol_module *module = hp_alloc_zeroed(1, sizeof *module);
  module->debug_path = hp_strdup(debug_path);
  module->callbacks = (Dwfl_Callbacks){.find_elf = dwfl_build_id_find_elf,
                                       .find_debuginfo = dwfl_standard_find_debuginfo,
                                       .section_address = dwfl_offline_section_address,
                                       .debuginfo_path = &module->debug_path};
  module->dwfl = dwfl_begin(&module->callbacks);
  *why = "no ELF file";
  if (module->dwfl != NULL) module->module = report(module, path, build_id);
  if (module->module != NULL) module->elf = dwfl_module_getelf(module->module, &module->elf_bias);
  if (module->elf != NULL) {
    *why = "another build id";
    if (build_id_fits(module->module, build_id)) {
      module->segment_count = hp_segments_read(module->elf, module->segments);
      module->dwarf = dwfl_module_getdwarf(module->module, &module->dwarf_bias);
      if (module->dwarf != NULL) find_units(module);
      return module;
    }
  }
  hp_symbol_module_close(module);
  return NULL;
}

void hp_symbol_module_close(struct hp_symbol_module *module) {
  if (module == NULL) return;
  for (size_t i = 0; i < module->unit_count; i++) free(module->units[i].functions.ranges);
  free(module->units);
  free(module->unit_ranges.ranges);
  free(module->symbols);
  for (size_t i = 0; i < module->text_count; i++) free(module->texts[i]);
  free(module->texts);
  hp_id_map_free(&module->qualified);
  hp_id_map_free(&module->file_names);
  if (module->dwfl != NULL) dwfl_end(module->dwfl);
  free(module->debug_path);
  free(module);
}

bool hp_symbol_module_has_lines(const struct hp_symbol_module *module) { return module->unit_ranges.count != 0; }

/* Subprograms of a unit, in namespaces and types too. What is nested in a function is looked for when the function is. */
static void index_functions(struct hp_address_ranges *list, Dwarf_Die *parent, unsigned depth) {
  Dwarf_Die child;
  if (depth > NESTING_MAX || dwarf_child(parent, &child) != 0) return;
  do {
    switch (dwarf_tag(&child)) {
      case DW_TAG_subprogram: add_die_ranges(list, &child, dwarf_dieoffset(&child)); break;
      case DW_TAG_namespace:
      case DW_TAG_module:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
      case DW_TAG_union_type: index_functions(list, &child, depth + 1); break;
      default: break;
    }
  } while (dwarf_siblingof(&child, &child) == 0);
}

static const char *linkage_name(Dwarf_Die *die) {
  Dwarf_Attribute attribute;
  Dwarf_Attribute *found = dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute);
  if (found == NULL) found = dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute);
  return found != NULL ? dwarf_formstring(found) : NULL;
}

static int64_t declared_line(Dwarf_Die *die) {
  Dwarf_Attribute attribute;
  Dwarf_Word value;
  if (dwarf_attr_integrate(die, DW_AT_decl_line, &attribute) == NULL || dwarf_formudata(&attribute, &value) != 0) return 0;
  return value <= INT32_MAX ? (int64_t)value : 0;
}

static int64_t number(Dwarf_Die *die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value;
  if (dwarf_attr(die, name, &attribute) == NULL || dwarf_formudata(&attribute, &value) != 0) return 0;
  return value <= INT32_MAX ? (int64_t)value : 0;
}

static uint32_t keep_text(struct hp_symbol_module *module, char *text) {
  hp_array_reserve(&module->texts, &module->text_capacity, module->text_count + 1, sizeof *module->texts);
  module->texts[module->text_count] = text;
  return (uint32_t)module->text_count++;
}

/* Names relative to where the compiler ran get that folder in front. Each name of a line table is made absolute once. */
static const char *absolute_file(struct hp_symbol_module *module, const struct unit *unit, const char *file) {
  if (file == NULL || file[0] == '\0') return "";
  if (file[0] == '<') return file;
  uint32_t known = hp_id_map_find(&module->file_names, (uintptr_t)file);
  if (known != UINT32_MAX) return module->texts[known];
  const char *folder = file[0] != '/' ? unit->folder : NULL;
  char *joined = hp_format("%s%s%s", folder != NULL ? folder : "", folder != NULL ? "/" : "", file);
  hp_path_clean(joined);
  hp_id_map_add(&module->file_names, (uintptr_t)file, keep_text(module, joined));
  return joined;
}

/* The child that holds the address and is code: a block or an inlined call. */
static bool child_at(Dwarf_Die *parent, Dwarf_Addr address, Dwarf_Die *out) {
  if (dwarf_child(parent, out) != 0) return false;
  do {
    switch (dwarf_tag(out)) {
      case DW_TAG_inlined_subroutine:
      case DW_TAG_lexical_block:
      case DW_TAG_try_block:
      case DW_TAG_catch_block:
        if (dwarf_haspc(out, address) == 1) return true;
        break;
      default: break;
    }
  } while (dwarf_siblingof(out, out) == 0);
  return false;
}

/* The entry that says where a function is declared, be this one an inlined call, its abstract twin or a definition. */
static Dwarf_Die origin_of(Dwarf_Die *die) {
  Dwarf_Die origin = *die;
  static const unsigned references[] = {DW_AT_abstract_origin, DW_AT_specification};
  for (int step = 0; step < 4; step++) {
    Dwarf_Attribute attribute;
    Dwarf_Die next;
    Dwarf_Attribute *found = dwarf_attr(&origin, references[0], &attribute);
    if (found == NULL) found = dwarf_attr(&origin, references[1], &attribute);
    if (found == NULL || dwarf_formref_die(found, &next) == NULL) break;
    origin = next;
  }
  return origin;
}

static const char *scope_name(Dwarf_Die *die) {
  const char *name = dwarf_diename(die);
  switch (dwarf_tag(die)) {
    case DW_TAG_namespace: return name != NULL ? name : "(anonymous namespace)";
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_subprogram: return name;
    default: return NULL;
  }
}

/* Local functions have no linker name; a C++ one gets its namespaces and classes in front. Entries lie in the order of their
 * offsets, so the way down to one is the last child that begins at or before it, again and again. */
static const char *qualified_name(struct hp_symbol_module *module, Dwarf_Die *function) {
  Dwarf_Die origin = origin_of(function), scope, child;
  const char *name = dwarf_diename(function);
  Dwarf_Off wanted = dwarf_dieoffset(&origin);
  if (name == NULL || dwarf_diecu(&origin, &scope, NULL, NULL) == NULL) return name;
  if (dwarf_srclang(&scope) == DW_LANG_C99 || dwarf_srclang(&scope) == DW_LANG_C11 || dwarf_srclang(&scope) == DW_LANG_C89)
    return name;
  uint32_t known = hp_id_map_find(&module->qualified, wanted);
  if (known != UINT32_MAX) return module->texts[known];
  char *path = hp_strdup("");
  for (int depth = 0; depth < NESTING_MAX && dwarf_child(&scope, &child) == 0; depth++) {
    Dwarf_Die inside = child;
    while (dwarf_siblingof(&child, &child) == 0 && dwarf_dieoffset(&child) <= wanted) inside = child;
    if (dwarf_dieoffset(&inside) == wanted) break;
    const char *part = scope_name(&inside);
    if (part != NULL) {
      char *longer = hp_format("%s%s::", path, part);
      free(path);
      path = longer;
    }
    scope = inside;
  }
  char *full = hp_format("%s%s", path, name);
  free(path);
  hp_id_map_add(&module->qualified, wanted, keep_text(module, full));
  return full;
}

static void set_function(struct hp_symbol_module *module, struct hp_symbol_frame *frame, Dwarf_Die *die) {
  const char *name = linkage_name(die);
  if (name == NULL) name = qualified_name(module, die);
  frame->system_name = name != NULL ? name : "";
  frame->start_line = declared_line(die);
}

/* Line of the address itself: the innermost frame's. */
static void set_line(struct hp_symbol_module *module, struct unit *unit, Dwarf_Addr address, struct hp_symbol_frame *frame) {
  Dwarf_Line *line = dwarf_getsrc_die(&unit->die, address);
  int number_of_line = 0, column = 0;
  frame->file = "";
  if (line == NULL) return;
  frame->file = absolute_file(module, unit, dwarf_linesrc(line, NULL, NULL));
  /* libdw keeps both as int; what a damaged table leaves below 0 is no line */
  if (dwarf_lineno(line, &number_of_line) == 0 && number_of_line > 0) frame->line = number_of_line;
  if (dwarf_linecol(line, &column) == 0 && column > 0) frame->column = column;
}

/* Where an inlined call was written: the line of the frame around it. */
static void set_call(struct hp_symbol_module *module, struct unit *unit, Dwarf_Die *call, struct hp_symbol_frame *frame) {
  Dwarf_Files *files;
  size_t count;
  int64_t file = number(call, DW_AT_call_file);
  frame->file = "";
  if (dwarf_getsrcfiles(&unit->die, &files, &count) == 0 && (size_t)file < count)
    frame->file = absolute_file(module, unit, dwarf_filesrc(files, (size_t)file, NULL, NULL));
  frame->line = number(call, DW_AT_call_line);
  frame->column = number(call, DW_AT_call_column);
}

/* From the subprogram inwards; the frames come out outermost first and are turned round. */
static size_t frames_in(struct hp_symbol_module *module, struct unit *unit, Dwarf_Die *function, Dwarf_Addr address,
                        struct hp_symbol_frame *frames) {
  Dwarf_Die die = *function, child;
  size_t count = 1;
  frames[0] = (struct hp_symbol_frame){.file = ""};
  set_function(module, &frames[0], &die);
  for (unsigned depth = 0; depth < NESTING_MAX && child_at(&die, address, &child); depth++) {
    if (dwarf_tag(&child) == DW_TAG_inlined_subroutine && count < HP_SYMBOL_FRAMES_MAX) {
      set_call(module, unit, &child, &frames[count - 1]);
      frames[count] = (struct hp_symbol_frame){.file = ""};
      set_function(module, &frames[count++], &child);
    }
    die = child;
  }
  set_line(module, unit, address, &frames[count - 1]);
  for (size_t i = 0; i < count / 2; i++) {
    struct hp_symbol_frame swapped = frames[i];
    frames[i] = frames[count - 1 - i];
    frames[count - 1 - i] = swapped;
  }
  return frames[count - 1].system_name[0] != '\0' ? count : 0;
}

static size_t frames_in_unit(struct hp_symbol_module *module, struct unit *unit, Dwarf_Addr address,
                             struct hp_symbol_frame *frames) {
  if (!unit->is_indexed) {
    index_functions(&unit->functions, &unit->die, 0);
    hp_address_ranges_sort(&unit->functions);
    unit->is_indexed = true;
  }
  size_t from = unit->functions.count;
  const struct hp_address_range *range = hp_address_ranges_find(&unit->functions, address, &from);
  Dwarf_Die function;
  Dwarf *dwarf = dwarf_cu_getdwarf(unit->die.cu); /* a split unit has a file of its own */
  if (range == NULL || dwarf_offdie(dwarf, range->what, &function) == NULL) return 0;
  return frames_in(module, unit, &function, address, frames);
}

static size_t frames_by_dwarf(struct hp_symbol_module *module, GElf_Addr address, struct hp_symbol_frame *frames) {
  if (module->dwarf == NULL) return 0;
  Dwarf_Addr in_dwarf = address - module->dwarf_bias;
  size_t from = module->unit_ranges.count;
  for (unsigned tries = 0; tries < OVERLAPS_MAX; tries++) {
    const struct hp_address_range *range = hp_address_ranges_find(&module->unit_ranges, in_dwarf, &from);
    if (range == NULL) return 0;
    size_t count = frames_in_unit(module, &module->units[range->what], in_dwarf, frames);
    if (count != 0) return count;
  }
  return 0;
}

/* Code without an entry of its own (labels in assembler, functions folded into another) still has lines in its unit's table. */
static void set_line_by_unit(struct hp_symbol_module *module, GElf_Addr address, struct hp_symbol_frame *frame) {
  if (module->dwarf == NULL) return;
  Dwarf_Addr in_dwarf = address - module->dwarf_bias;
  size_t from = module->unit_ranges.count;
  for (unsigned tries = 0; tries < OVERLAPS_MAX && frame->line == 0; tries++) {
    const struct hp_address_range *range = hp_address_ranges_find(&module->unit_ranges, in_dwarf, &from);
    if (range == NULL) return;
    set_line(module, &module->units[range->what], in_dwarf, frame);
  }
}

static int compare_symbols(const void *a, const void *b) {
  const struct symbol *x = a, *y = b;
  if (x->low != y->low) return x->low < y->low ? -1 : 1;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  return strcmp(y->name, x->name);
}

/* Functions with a size before labels without, global before weak before local. */
static int symbol_rank(const GElf_Sym *symbol) {
  int rank = symbol->st_size != 0 ? 4 : 0;
  if (GELF_ST_BIND(symbol->st_info) == STB_GLOBAL) return rank + 2;
  return GELF_ST_BIND(symbol->st_info) == STB_WEAK ? rank + 1 : rank;
}

/* _end, __GNU_EH_FRAME_HDR and their like have no type either, but are not in code. Sets *end to the section's, as linked. */
static bool is_in_code(Elf *elf, GElf_Word section, GElf_Addr *end) {
  GElf_Shdr header;
  Elf_Scn *found = section < SHN_LORESERVE && elf != NULL ? elf_getscn(elf, section) : NULL;
  if (found == NULL || gelf_getshdr(found, &header) == NULL || (header.sh_flags & SHF_EXECINSTR) == 0) return false;
  *end = header.sh_addr + header.sh_size;
  return true;
}

static void read_symbols(struct hp_symbol_module *module) {
  module->has_symbols = true;
  int count = dwfl_module_getsymtab(module->module);
  for (int i = 1; i < count; i++) {
    GElf_Sym symbol;
    GElf_Addr address;
    GElf_Word section;
    Elf *elf;
    Dwarf_Addr bias;
    const char *name = dwfl_module_getsym_info(module->module, i, &symbol, &address, &section, &elf, &bias);
    int type = GELF_ST_TYPE(symbol.st_info);
    if (name == NULL || name[0] == '\0' || section == SHN_UNDEF || address == 0) continue;
    if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) continue;
    /* Labels in assembler are functions too, mapping symbols and local labels are not. */
    GElf_Addr section_end = 0;
    bool in_code = is_in_code(elf, section, &section_end);
    if (type == STT_NOTYPE && (name[0] == '$' || name[0] == '.' || !in_code)) continue;
    hp_array_reserve(&module->symbols, &module->symbol_capacity, module->symbol_count + 1, sizeof *module->symbols);
    module->symbols[module->symbol_count++] =
        (struct symbol){address, address + symbol.st_size, in_code ? section_end + bias : 0, name, symbol_rank(&symbol)};
  }
  if (module->symbol_count != 0) qsort(module->symbols, module->symbol_count, sizeof *module->symbols, compare_symbols);
}

/* The last symbol at or below the address whose size says that it reaches so far: a label inside a function is not what the code is in.
 * Where there is none, the last one, if it has no size: it reaches to the next, but not out of its section. */
static size_t frames_by_symbol(struct hp_symbol_module *module, GElf_Addr address, struct hp_symbol_frame *frames) {
  if (!module->has_symbols) read_symbols(module);
  size_t low = 0, high = module->symbol_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (module->symbols[middle].low <= address)
      low = middle + 1;
    else
      high = middle;
  }
  const struct symbol *found = NULL, *last = low > 0 ? &module->symbols[low - 1] : NULL;
  for (unsigned tries = 0; low > 0 && tries < OVERLAPS_MAX && found == NULL; low--, tries++)
    if (address < module->symbols[low - 1].high) found = &module->symbols[low - 1];
  if (found == NULL && last != NULL && last->high == last->low && address < last->reach) found = last;
  if (found == NULL) return 0;
  frames[0] = (struct hp_symbol_frame){.system_name = found->name, .file = ""};
  return 1;
}

/* The function that holds the code has a linker name in the symbol table even where DWARF leaves it out; it says more. */
static void refine_name(struct hp_symbol_module *module, GElf_Addr address, struct hp_symbol_frame *frame) {
  struct hp_symbol_frame symbol;
  if (frame->system_name[0] == '_' && (frame->system_name[1] == 'Z' || frame->system_name[1] == 'R')) return;
  if (frames_by_symbol(module, address, &symbol) == 1 && symbol.system_name[0] == '_' &&
      (symbol.system_name[1] == 'Z' || symbol.system_name[1] == 'R'))
    frame->system_name = symbol.system_name;
}

size_t hp_symbol_module_frames(struct hp_symbol_module *module, const struct hp_symbol_place *place,
                               struct hp_symbol_frame frames[HP_SYMBOL_FRAMES_MAX]) {
  GElf_Addr at = hp_segments_find(module->segments, module->segment_count, place) + module->elf_bias;
  size_t count = frames_by_dwarf(module, at, frames);
  if (count == 0) {
    count = frames_by_symbol(module, at, frames);
    if (count != 0) set_line_by_unit(module, at, &frames[0]);
    return count;
  }
  refine_name(module, at, &frames[count - 1]);
  return count;
}
