/* SPDX-License-Identifier: MIT
 * frame_shapes.h - functions whose frames compilers lay out in every way they know. frame_shapes.c is compiled once for each
 * set of options (CMakeLists.txt); a path is a list of shapes, each of which calls the next. */
#ifndef HP_FRAME_SHAPES_H
#define HP_FRAME_SHAPES_H

#include <stddef.h>

struct path;
typedef long (*frame_shape)(struct path *path, long value);

struct path {
  const frame_shape *shapes;
  size_t length;
  size_t at;
  void (*leaf)(void);
};

/* Calls the next shape of the path, or its leaf. */
long path_next(struct path *path, long value);

enum { SHAPE_COUNT = 14 };
extern const frame_shape *const all_shapes[]; /* of each set of options, SHAPE_COUNT each; ends with NULL */

#endif
