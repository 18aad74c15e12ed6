/* SPDX-License-Identifier: MIT
 * number_two_is_mine.c - claim: a program that closed its error output and got the number 2 for a socket or a pipe of its
 * own never finds a line of the profiler's in it. Run with an output that cannot be written, so that there is a line. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int ends[2];
  bool is_socket = argc > 1 && strcmp(argv[1], "socket") == 0;
  if (close(2) != 0 || (is_socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) != 0) return 1;
  int reading = ends[0], writing = ends[1];
  if (writing != 2) { /* the pipe's reading end got it */
    reading = dup(reading);
    if (dup2(writing, 2) != 2) return 2;
  }
  if (is_socket) reading = reading == 2 ? writing : reading;
  void *volatile kept = malloc(100);
  raise(SIGUSR2);
  free(kept);
  char byte;
  fcntl(reading, F_SETFL, O_NONBLOCK);
  return read(reading, &byte, 1) > 0 ? 3 : 0;
}
