// A rank that calls the shim itself: parts of `argv[1]` bytes between all ranks, into memory that nobody has touched. Each rank
// prints a line of JSON: bytes that were wrong, and the most that one call moved.
//
// With `argv[2]` below `argv[1]` each part has only so many bytes of memory, repeated, so that large parts need little.
#define _GNU_SOURCE
#include "turbogr_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_RANKS = 16, PAGE = 1 << 16 };

static const turbogr_mpi *mpi;
static int rank, size;
static int64_t part, memory, apart; // bytes of a part, of its memory, and from one part to the next
static int64_t sizes[MOST_RANKS], places[MOST_RANKS], wrong, most;

static void check(int code) {
  char text[256] = {0};
  if (!code) return;
  mpi->error_text(code, text, sizeof text);
  fprintf(stderr, "rank %d: %s\n", rank, text);
  mpi->abort(1);
}

// One part for each rank.
static char *map_parts(void) {
  char *all = mmap(NULL, (size_t)(apart * size), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  for (int i = 0; i < size; i++) {
    int file = memfd_create("part", 0);
    if (file < 0 || ftruncate(file, memory)) exit(3);
    for (int64_t at = 0; at < part; at += memory) {
      size_t bytes = (size_t)(part - at < memory ? part - at : memory);
      void *to = all + i * apart + at;
      if (mmap(to, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != to) exit(3);
    }
    close(file);
  }
  return all;
}

// What `from` sends to `to`; never 0.
static char value(int from, int to, int64_t at) {
  return (char)(1 | (at ^ at >> 7 ^ at >> 14 ^ at >> 21 ^ from << 1 ^ to << 4));
}

static void fill(char *parts, int to) {
  for (int64_t i = 0; i < memory; i++) parts[to * apart + i] = value(rank, to, i);
}

static void verify(const char *parts, int from, int to) {
  for (int64_t i = 0; i < memory; i++) wrong += parts[i] != value(from, to, i);
}

static int64_t arrived(const char *parts) {
  int64_t count = 0;
  for (int from = 0; from < size; from++)
    for (int64_t i = PAGE - 1; i < part; i += PAGE) count += parts[from * apart + i] != 0;
  return count * PAGE;
}

static void note(const char *parts, int64_t *before) {
  int64_t now = arrived(parts);
  if (now - *before > most) most = now - *before;
  *before = now;
}

// Tests requests, the last first, until all are done. Those that are have -1.
static void finish(int *requests, int count) {
  int done, moved, waits_for;
  for (int left = 1; left > 0; usleep(50)) {
    left = 0;
    for (int i = count - 1; i >= 0; i--) {
      if (requests[i] < 0) continue;
      check(mpi->test(requests[i], &done, &moved, &waits_for));
      if (done) requests[i] = -1;
      else left++;
    }
  }
}

int main(int count, char **words) {
  int provided, requests[2], done = 0, moved, waits_for;
  mpi = turbogr_mpi_open(TURBOGR_MPI_ABI);
  part = count > 1 ? atoll(words[1]) : PAGE, memory = count > 2 ? atoll(words[2]) : part;
  apart = (part + PAGE - 1) / PAGE * PAGE;
  check(mpi->init(&rank, &size, &provided));
  char *send = map_parts(), *into = map_parts();
  for (int i = 0; i < size; i++) sizes[i] = part, places[i] = i * apart, fill(send, i);
  check(mpi->barrier(0, requests));
  finish(requests, 1);

  int64_t before = 0;
  check(mpi->all_to_all_v(0, send, sizes, places, into, sizes, places, requests));
  note(into, &before);
  while (!done) {
    check(mpi->test(requests[0], &done, &moved, &waits_for));
    note(into, &before);
    if (!moved) usleep(50);
  }
  for (int from = 0; from < size; from++) verify(into + from * apart, from, rank);

  // Two exchanges of one communicator at a time; some ranks have moved a part of the first when they start the second. This
  // rank's part of the gather is in place.
  int64_t eights[MOST_RANKS], small[MOST_RANKS], mine[MOST_RANKS], theirs[MOST_RANKS];
  for (int i = 0; i < size; i++) eights[i] = 8, small[i] = 8 * i, mine[i] = rank * 100 + i;
  for (int64_t i = 0; i < memory; i++) into[rank * apart + i] = value(rank, size, i);
  check(mpi->all_gather_v(0, into + rank * apart, part, into, sizes, places, &requests[0]));
  done = 0;
  for (int i = 0; i < 3 * rank && !done; i += moved, usleep(50)) check(mpi->test(requests[0], &done, &moved, &waits_for));
  if (done) requests[0] = -1;
  check(mpi->all_to_all_v(0, mine, eights, small, theirs, eights, small, &requests[1]));
  finish(requests, 2);
  for (int from = 0; from < size; from++) verify(into + from * apart, from, size), wrong += theirs[from] != from * 100 + rank;

  // The last rank's first part to all.
  char *shared = rank == size - 1 ? send : into;
  check(mpi->broadcast(0, shared, part, size - 1, &requests[0]));
  check(mpi->barrier(0, &requests[1]));
  finish(requests, 2);
  verify(shared, size - 1, 0);

  printf("{\"rank\":%d,\"wrong\":%lld,\"most\":%lld}\n", rank, (long long)wrong, (long long)most);
  fflush(stdout);
  check(mpi->finalize());
  return 0;
}
