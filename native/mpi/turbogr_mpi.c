// turbogr_mpi.h over MPI-3. Built by `turbogr launch` with the machine's own compiler wrapper:
//   mpicc -O2 -fPIC -shared -fvisibility=hidden exchange.c turbogr_mpi.c -o <cache>/<library>.so
#include "turbogr_mpi.h"

#include "exchange.h"
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_COMMS = 256, PULSE_TAG = 8 };

static Group groups[MOST_COMMS];
static int group_count;
static char *hosts; // [size][MPI_MAX_PROCESSOR_NAME]

static MPI_Comm pulse_comm;
static MPI_Request pulse_in = MPI_REQUEST_NULL, pulse_out = MPI_REQUEST_NULL;
static char pulse_received, pulse_sent;
static int pulses_open;

static int copy_text(const char *from, char *text, int capacity) {
  int i = 0;
  for (; from[i] && from[i] != '\n' && i < capacity - 1; i++) text[i] = from[i];
  text[i] = 0;
  return 0;
}

// Takes over `comm` as the next group.
static int adopt(MPI_Comm comm, int *made, int *rank, int *size) {
  *made = -1, *rank = -1, *size = 0;
  if (comm == MPI_COMM_NULL) return 0;
  if (group_count == MOST_COMMS) return NO_ROOM;
  Group *group = &groups[group_count];
  int error;
  MPI_Group members, world;
  group->comm = comm;
  if ((error = MPI_Comm_rank(comm, &group->rank))) return error;
  if ((error = MPI_Comm_size(comm, &group->size))) return error;
  int *order = malloc(sizeof(int) * (size_t)group->size);
  group->world = malloc(sizeof(int) * (size_t)group->size);
  if (!order || !group->world) return NO_MEMORY;
  for (int i = 0; i < group->size; i++) order[i] = i;
  if ((error = MPI_Comm_group(comm, &members))) return error;
  if ((error = MPI_Comm_group(MPI_COMM_WORLD, &world))) return error;
  error = MPI_Group_translate_ranks(members, group->size, order, world, group->world);
  MPI_Group_free(&members);
  MPI_Group_free(&world);
  free(order);
  *made = group_count++, *rank = group->rank, *size = group->size;
  return error;
}

// UCX aborts a rank that reads from the memory of one that has just died, possibly before the dead one's connections are
// closed. The aborted rank ends a moment later, so that the launcher hears of the dead one first.
static void abort_later(int signal_number) {
  const struct timespec moment = {0, 300 * 1000 * 1000};
  nanosleep(&moment, NULL);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

static int shim_init(int *rank, int *size, int *provided) {
  int error, started = 0, made, length;
  char name[MPI_MAX_PROCESSOR_NAME] = {0};
  MPI_Comm world;
  MPI_Initialized(&started);
  if (!started && (error = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, provided))) return error;
  signal(SIGABRT, abort_later);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if ((error = MPI_Comm_dup(MPI_COMM_WORLD, &world))) return error;
  if ((error = MPI_Comm_dup(MPI_COMM_WORLD, &pulse_comm))) return error;
  if ((error = adopt(world, &made, rank, size))) return error;
  hosts = calloc((size_t)*size, MPI_MAX_PROCESSOR_NAME);
  if (!hosts) return NO_MEMORY;
  if ((error = MPI_Get_processor_name(name, &length))) return error;
  return MPI_Allgather(name, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, hosts, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, world);
}

static int shim_library(char *text, int capacity) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {0};
  int length, error = MPI_Get_library_version(version, &length);
  return error ? error : copy_text(version, text, capacity);
}

static int shim_host(int rank, char *text, int capacity) {
  return copy_text(hosts + (size_t)rank * MPI_MAX_PROCESSOR_NAME, text, capacity);
}

static int shim_split(int comm, int colour, int key, int *made, int *rank, int *size) {
  MPI_Comm part;
  int error = MPI_Comm_split(groups[comm].comm, colour < 0 ? MPI_UNDEFINED : colour, key, &part);
  return error ? error : adopt(part, made, rank, size);
}

static int shim_split_node(int comm, int key, int *made, int *rank, int *size) {
  MPI_Comm part;
  int error = MPI_Comm_split_type(groups[comm].comm, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &part);
  return error ? error : adopt(part, made, rank, size);
}

static int shim_all_to_all_v(int comm, const void *send, const int64_t *send_bytes, const int64_t *send_at,
                             void *into, const int64_t *receive_bytes, const int64_t *receive_at, int *request) {
  return exchange_all_to_all_v(&groups[comm], send, send_bytes, send_at, into, receive_bytes, receive_at, request);
}

static int shim_all_gather_v(int comm, const void *send, int64_t bytes, void *into, const int64_t *receive_bytes,
                             const int64_t *receive_at, int *request) {
  return exchange_all_gather_v(&groups[comm], send, bytes, into, receive_bytes, receive_at, request);
}

static int shim_broadcast(int comm, void *data, int64_t bytes, int root, int *request) {
  return exchange_broadcast(&groups[comm], data, bytes, root, request);
}

static int shim_barrier(int comm, int *request) { return exchange_barrier(&groups[comm], request); }

static int shim_pulse(int send, int *heard) {
  const Group *world = &groups[0];
  int error, finished = 1, next = (world->rank + 1) % world->size, last = (world->rank + world->size - 1) % world->size;
  *heard = 0;
  if (world->size == 1) return 0;
  if (!pulses_open) {
    pulses_open = 1;
    if ((error = MPI_Irecv(&pulse_received, 1, MPI_CHAR, last, PULSE_TAG, pulse_comm, &pulse_in))) return error;
  }
  while (finished) {
    if ((error = MPI_Test(&pulse_in, &finished, MPI_STATUS_IGNORE))) return error;
    if (!finished) break;
    ++*heard;
    if ((error = MPI_Irecv(&pulse_received, 1, MPI_CHAR, last, PULSE_TAG, pulse_comm, &pulse_in))) return error;
  }
  if (!send) return 0;
  if ((error = MPI_Test(&pulse_out, &finished, MPI_STATUS_IGNORE))) return error;
  return finished ? MPI_Isend(&pulse_sent, 1, MPI_CHAR, next, PULSE_TAG, pulse_comm, &pulse_out) : 0;
}

static int shim_abort(int code) { return MPI_Abort(MPI_COMM_WORLD, code); }

static int shim_finalize(void) {
  // Signs of life are still under way: everybody stops sending, then the open receives are withdrawn.
  int error = MPI_Barrier(groups[0].comm);
  if (!error && pulses_open) {
    MPI_Wait(&pulse_out, MPI_STATUS_IGNORE);
    MPI_Barrier(groups[0].comm);
    MPI_Cancel(&pulse_in);
    MPI_Wait(&pulse_in, MPI_STATUS_IGNORE);
  }
  return error ? error : MPI_Finalize();
}

static int shim_error_text(int code, char *text, int capacity) {
  char words[MPI_MAX_ERROR_STRING] = {0};
  int length;
  if (code == NO_ROOM) return copy_text("too many communicators or exchanges at once", text, capacity);
  if (code == NO_MEMORY) return copy_text("out of memory", text, capacity);
  MPI_Error_string(code, words, &length);
  return copy_text(words, text, capacity);
}

static const turbogr_mpi functions = {
    .abi = TURBOGR_MPI_ABI,
    .init = shim_init,
    .library = shim_library,
    .host = shim_host,
    .split = shim_split,
    .split_node = shim_split_node,
    .all_to_all_v = shim_all_to_all_v,
    .all_gather_v = shim_all_gather_v,
    .broadcast = shim_broadcast,
    .barrier = shim_barrier,
    .test = exchange_test,
    .pulse = shim_pulse,
    .abort = shim_abort,
    .finalize = shim_finalize,
    .error_text = shim_error_text,
};

__attribute__((visibility("default"))) const turbogr_mpi *turbogr_mpi_open(int abi) {
  return abi == TURBOGR_MPI_ABI ? &functions : NULL;
}
