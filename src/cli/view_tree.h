/* SPDX-License-Identifier: MIT
 * view_tree.h - stacks as a tree of prefixes: each distinct stack is a node, equal beginnings share theirs.
 *
 *   main -> parse -> malloc'er      0 --main--> 1 --parse--> 2 --grow--> 3
 *   main -> serve                             \--serve--> 4
 *
 * Grown by hp_view_tree_child; hp_view_tree_number then gives preorder numbers (a parent before its children, a subtree in
 * one run), which is what the page's sums rely on. No recursion: stacks may be of any depth.
 */
#ifndef HP_VIEW_TREE_H
#define HP_VIEW_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "id_map.h"

struct hp_view_node {
  uint32_t parent;
  uint32_t frame;
  uint32_t last_child; /* 0: none */
  uint32_t previous;   /* sibling grown before this one, 0: none */
};

struct hp_view_tree {
  struct hp_view_node *nodes; /* [0]: the empty stack */
  size_t count;
  size_t capacity;
  struct hp_id_map children; /* parent and frame -> node */
};

/* Only the empty stack. hp_view_tree_free frees all of it, not the struct. */
void hp_view_tree_init(struct hp_view_tree *tree);
void hp_view_tree_free(struct hp_view_tree *tree);

/* The node of `frame` called by `parent`, made if it is new. */
uint32_t hp_view_tree_child(struct hp_view_tree *tree, uint32_t parent, uint32_t frame);

/* number_of[node] = preorder number, node_of[number] = node; both of tree->count entries, freed by the caller. */
void hp_view_tree_number(const struct hp_view_tree *tree, uint32_t **number_of, uint32_t **node_of);

#endif
