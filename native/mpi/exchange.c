// An exchange is a list of flows, one for each peer and direction, which are cut into pieces. Only a window of pieces is posted
// at a time, and a rank's own part is copied piece by piece, so that no call takes long: the thread that calls MPI also
// sends the heartbeats. It is often the first to touch a large receive buffer, and its page faults cost more than the copy.
#include "exchange.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_EXCHANGES = 256, TAG = 7 };
// Open MPI's TCP reaches half of a 1 Gbit/s link with one large message, all of it with these.
#define PIECE ((int64_t)1 << 20)
// Bytes under way. What is posted to send delays heartbeats on a slow link. More is posted to receive, so that what a peer
// sends next finds its place at once.
#define SEND_WINDOW ((int64_t)16 << 20)
#define RECEIVE_WINDOW ((int64_t)32 << 20)
// A test ends when this many bytes have arrived or left: a fast peer fills the window while it is tested.
#define MOST_AT_ONCE SEND_WINDOW
// The window of a flow, however many share that of the exchange.
#define LEAST_SHARE ((int64_t)4 << 20)

typedef enum { RECEIVE, SEND, BROADCAST, BARRIER } Kind;
enum { KINDS = BARRIER + 1 };

typedef struct {
  Kind kind;
  int peer;           // in the group; root of a broadcast
  char *at;           // the next piece
  int64_t left, open; // bytes not yet posted, bytes under way
} Flow;

typedef struct {
  MPI_Request request;
  int flow, bytes;
} Piece;

typedef struct {
  int used;
  int64_t serial; // by start
  const Group *group;
  Flow *flows;
  Piece *pieces; // under way
  int flow_count, flow_capacity, piece_count, piece_capacity;
  int64_t unposted; // bytes of all flows
  struct {
    int flows;
    int64_t open;
  } kinds[KINDS];
  char *own_to;
  const char *own_from;
  int64_t own_left; // bytes of this rank's own part that are not copied yet
} Exchange;

static Exchange exchanges[MOST_EXCHANGES];
static int64_t started;

// Room for `count` elements; it is kept for the next exchange.
static int reserve(void **elements, int *capacity, int count, size_t bytes) {
  if (count <= *capacity) return 0;
  int room = count < 64 ? 64 : count * 2;
  void *larger = realloc(*elements, (size_t)room * bytes);
  if (!larger) return NO_MEMORY;
  *elements = larger, *capacity = room;
  return 0;
}

// A new exchange with room for `flows`.
static int open_exchange(const Group *group, int flows, int *request) {
  for (int i = 0; i < MOST_EXCHANGES; i++) {
    Exchange *exchange = &exchanges[i];
    if (exchange->used) continue;
    int error = reserve((void **)&exchange->flows, &exchange->flow_capacity, flows, sizeof(Flow));
    if (error) return error;
    exchange->used = 1, exchange->serial = started++, exchange->group = group;
    exchange->flow_count = 0, exchange->piece_count = 0;
    exchange->unposted = 0, exchange->own_left = 0;
    memset(exchange->kinds, 0, sizeof exchange->kinds);
    *request = i;
    return 0;
  }
  return NO_ROOM;
}

static void add_flow(Exchange *exchange, Kind kind, int peer, const void *at, int64_t bytes) {
  if (bytes <= 0) return;
  exchange->flows[exchange->flow_count++] = (Flow){kind, peer, (char *)at, bytes, 0};
  exchange->kinds[kind].flows++;
  exchange->unposted += bytes;
}

// Parts do not overlap; a part that is already in place is left there.
static void add_own(Exchange *exchange, const char *from, char *to, int64_t bytes) {
  exchange->own_from = from, exchange->own_to = to;
  exchange->own_left = from == to ? 0 : bytes;
}

static int post(Exchange *exchange, int index, int bytes) {
  Flow *flow = &exchange->flows[index];
  MPI_Comm comm = exchange->group->comm;
  int error = reserve((void **)&exchange->pieces, &exchange->piece_capacity, exchange->piece_count + 1, sizeof(Piece));
  if (error) return error;
  Piece *piece = &exchange->pieces[exchange->piece_count++];
  piece->flow = index, piece->bytes = bytes;
  switch (flow->kind) {
  case RECEIVE: error = MPI_Irecv(flow->at, bytes, MPI_BYTE, flow->peer, TAG, comm, &piece->request); break;
  case SEND: error = MPI_Isend(flow->at, bytes, MPI_BYTE, flow->peer, TAG, comm, &piece->request); break;
  case BROADCAST: error = MPI_Ibcast(flow->at, bytes, MPI_BYTE, flow->peer, comm, &piece->request); break;
  case BARRIER: error = MPI_Ibarrier(comm, &piece->request); break;
  }
  flow->at += bytes, flow->left -= bytes, flow->open += bytes;
  exchange->unposted -= bytes, exchange->kinds[flow->kind].open += bytes;
  return error;
}

// MPI matches messages of two ranks in the order in which they are posted, so an exchange waits until the earlier ones of
// its group have posted all of theirs.
static int has_turn(const Exchange *exchange) {
  for (int i = 0; i < MOST_EXCHANGES; i++) {
    const Exchange *other = &exchanges[i];
    if (other->used && other->group == exchange->group && other->serial < exchange->serial && other->unposted) return 0;
  }
  return 1;
}

// Posts what the windows have room for, first flows first. The i-th peer to receive from has this rank as its i-th peer to
// send to, and the first unfinished flow of each direction always has pieces under way, so windows cannot deadlock.
static int post_pieces(Exchange *exchange) {
  int full[KINDS] = {0};
  if (!exchange->unposted || !has_turn(exchange)) return 0;
  for (int i = 0; i < exchange->flow_count; i++) {
    Flow *flow = &exchange->flows[i];
    Kind kind = flow->kind;
    int64_t window = kind == SEND ? SEND_WINDOW : RECEIVE_WINDOW, share = window / exchange->kinds[kind].flows;
    if (share < LEAST_SHARE) share = LEAST_SHARE;
    while (flow->left && !full[kind]) {
      int64_t bytes = flow->left < PIECE ? flow->left : PIECE;
      if (flow->open + bytes > share) break;
      full[kind] = exchange->kinds[kind].open + bytes > window;
      int error = full[kind] ? 0 : post(exchange, i, (int)bytes);
      if (error) return error;
    }
  }
  return 0;
}

static void copy_piece(Exchange *exchange) {
  int64_t bytes = exchange->own_left < PIECE ? exchange->own_left : PIECE;
  memcpy(exchange->own_to, exchange->own_from, (size_t)bytes);
  exchange->own_to += bytes, exchange->own_from += bytes, exchange->own_left -= bytes;
}

static int start(Exchange *exchange) {
  int error = post_pieces(exchange);
  if (!error && exchange->own_left) copy_piece(exchange);
  return error;
}

// Neighbours come first, so that no rank is everybody's first target.
int exchange_all_to_all_v(const Group *group, const void *send, const int64_t *send_bytes, const int64_t *send_at,
                          void *into, const int64_t *receive_bytes, const int64_t *receive_at, int *request) {
  int me = group->rank, n = group->size, error = open_exchange(group, 2 * (n - 1), request);
  if (error) return error;
  Exchange *exchange = &exchanges[*request];
  for (int i = 1; i < n; i++) {
    int from = (me + n - i) % n, to = (me + i) % n;
    add_flow(exchange, RECEIVE, from, (char *)into + receive_at[from], receive_bytes[from]);
    add_flow(exchange, SEND, to, (const char *)send + send_at[to], send_bytes[to]);
  }
  add_own(exchange, (const char *)send + send_at[me], (char *)into + receive_at[me], send_bytes[me]);
  return start(exchange);
}

int exchange_all_gather_v(const Group *group, const void *send, int64_t bytes, void *into, const int64_t *receive_bytes,
                          const int64_t *receive_at, int *request) {
  int me = group->rank, n = group->size, error = open_exchange(group, 2 * (n - 1), request);
  if (error) return error;
  Exchange *exchange = &exchanges[*request];
  for (int i = 1; i < n; i++) {
    int from = (me + n - i) % n;
    add_flow(exchange, RECEIVE, from, (char *)into + receive_at[from], receive_bytes[from]);
    add_flow(exchange, SEND, (me + i) % n, send, bytes);
  }
  add_own(exchange, send, (char *)into + receive_at[me], bytes);
  return start(exchange);
}

int exchange_broadcast(const Group *group, void *data, int64_t bytes, int root, int *request) {
  int error = open_exchange(group, 1, request);
  if (error) return error;
  add_flow(&exchanges[*request], BROADCAST, root, data, bytes);
  return start(&exchanges[*request]);
}

// A flow of one byte that is never read.
int exchange_barrier(const Group *group, int *request) {
  int error = open_exchange(group, 1, request);
  if (error) return error;
  add_flow(&exchanges[*request], BARRIER, 0, NULL, 1);
  return start(&exchanges[*request]);
}

// The world rank that a piece comes from, or -1.
static int source(const Group *group, const Flow *flow) {
  int receives = flow->kind == RECEIVE || (flow->kind == BROADCAST && flow->peer != group->rank);
  return receives ? group->world[flow->peer] : -1;
}

int exchange_test(int request, int *done, int *moved, int *waits_for) {
  Exchange *exchange = &exchanges[request];
  int64_t bytes = 0;
  int left = 0, error;
  *moved = exchange->own_left > 0, *waits_for = -1;
  if (exchange->own_left) copy_piece(exchange);
  for (int i = 0; i < exchange->piece_count; i++) {
    Piece piece = exchange->pieces[i];
    Flow *flow = &exchange->flows[piece.flow];
    int finished = 0;
    if (bytes < MOST_AT_ONCE && (error = MPI_Test(&piece.request, &finished, MPI_STATUS_IGNORE))) return error;
    if (finished) {
      bytes += piece.bytes, flow->open -= piece.bytes, exchange->kinds[flow->kind].open -= piece.bytes;
      *moved = 1;
    } else {
      int from = source(exchange->group, flow);
      if (from >= 0) *waits_for = from;
      exchange->pieces[left++] = piece;
    }
  }
  exchange->piece_count = left;
  if ((error = post_pieces(exchange))) return error;
  *done = !exchange->piece_count && !exchange->unposted && !exchange->own_left;
  if (*done) exchange->used = 0;
  return 0;
}
