/* SPDX-License-Identifier: MIT
 * main.c - the heapprof command; everything else is in hp_cli, where tests can reach it.
 */
#include "command.h"

int main(int argc, char **argv) { return hp_command_main(argc, argv); }
