// Exchanges of any size, in bounded pieces. Internal to the shim.
#pragma once
#include <mpi.h>
#include <stdint.h>

// Codes of our own are negative; those of MPI are positive.
enum { NO_ROOM = -1, NO_MEMORY = -2 };

typedef struct {
  MPI_Comm comm;
  int rank, size;
  int *world; // world rank of each member
} Group;

// As in turbogr_mpi.h, for a group instead of its number.
int exchange_all_to_all_v(const Group *group, const void *send, const int64_t *send_bytes, const int64_t *send_at,
                          void *into, const int64_t *receive_bytes, const int64_t *receive_at, int *request);
int exchange_all_gather_v(const Group *group, const void *send, int64_t bytes, void *into, const int64_t *receive_bytes,
                          const int64_t *receive_at, int *request);
int exchange_broadcast(const Group *group, void *data, int64_t bytes, int root, int *request);
int exchange_barrier(const Group *group, int *request);
int exchange_test(int request, int *done, int *moved, int *waits_for);
