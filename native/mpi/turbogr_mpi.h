// The ABI between turbogr and an MPI library: plain C types only, so that one addon serves any MPI. MPI moves bytes and
// nothing else; every sum is ours. All functions are called by one thread.
//
// Communicators and requests are small integers; communicator 0 is the world. Functions return 0, or a code that
// `error_text` explains.
#pragma once
#include <stdint.h>

#define TURBOGR_MPI_ABI 2

typedef struct {
  int abi;
  // Starts MPI. `provided` is the thread level granted.
  int (*init)(int *rank, int *size, int *provided);
  // Name and version of the MPI library, first line.
  int (*library)(char *text, int capacity);
  // Host name of a rank of the world.
  int (*host)(int rank, char *text, int capacity);
  // Ranks of `comm` with the same colour, ordered by `key`; every rank of `comm` calls it. A negative colour joins none.
  int (*split)(int comm, int colour, int key, int *made, int *rank, int *size);
  // Ranks of `comm` that share memory: a node.
  int (*split_node)(int comm, int key, int *made, int *rank, int *size);
  // Bytes for every rank of `comm` lie at `send + send_at[rank]`; parts of any size. Not blocking: buffers stay untouched
  // until `test` says so. Ranks start the exchanges of a communicator in the same order.
  int (*all_to_all_v)(int comm, const void *send, const int64_t *send_bytes, const int64_t *send_at, void *receive,
                      const int64_t *receive_bytes, const int64_t *receive_at, int *request);
  // The same bytes to every rank.
  int (*all_gather_v)(int comm, const void *send, int64_t bytes, void *receive, const int64_t *receive_bytes,
                      const int64_t *receive_at, int *request);
  int (*broadcast)(int comm, void *data, int64_t bytes, int root, int *request);
  int (*barrier)(int comm, int *request);
  // Makes progress, by a bounded number of bytes; `moved` says whether there was some. While not done, `waits_for` is a
  // world rank whose bytes are missing, or -1. A request that is done is forgotten.
  int (*test)(int request, int *done, int *moved, int *waits_for);
  // Sends a sign of life to the next rank of a ring over the world and counts those of the one before.
  int (*pulse)(int send, int *heard);
  // Ends the whole job. Does not return when MPI still works.
  int (*abort)(int code);
  // Collective; no request may be open.
  int (*finalize)(void);
  int (*error_text)(int code, char *text, int capacity);
} turbogr_mpi;

// The functions, or null when the shim was built for another ABI.
const turbogr_mpi *turbogr_mpi_open(int abi);
