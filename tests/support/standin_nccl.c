/* A libnccl.so.2 beside the stand-in of libcuda: memory of all GPUs is the host's, so that it adds up what
 * lies there when the group ends; between processes by TCP, with the process of rank 0 in the middle
 * (MASTER_ADDR, and a port that the unique id holds). STANDIN_NCCL: `wrong` sums, `hang` at the start,
 * `fail`; STANDIN_NCCL_DELAY: milliseconds that each all-reduce takes. It says which network it uses as
 * NCCL_DEBUG=INFO has it: what STANDIN_NCCL_NETWORK is, or Socket. It cannot show that a real NCCL finds
 * its way between GPUs, nor between nodes. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct {
  char internal[128];
} ncclUniqueId;
typedef struct {
  int32_t first, count;
} Hello;

static struct {
  const uint32_t *from;
  uint32_t *to;
  size_t count;
} calls[64];
static int waiting;        /* all-reduces of this group */
static int own;            /* ranks of this process */
static int first, joining; /* the first of them; those that this group makes */
static int ranks;          /* of all processes */
static int port, listener = -1;
static int links[64], links_made; /* rank 0's process: to the others; another's: to that one */

static int is(const char *name) {
  const char *value = getenv("STANDIN_NCCL");
  return value != NULL && strcmp(value, name) == 0;
}
static struct sockaddr_in place(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  const char *address = getenv("MASTER_ADDR");
  inet_pton(AF_INET, address != NULL ? address : "127.0.0.1", &at.sin_addr);
  return at;
}
static int all(int fd, void *bytes, size_t size, int write_it) {
  for (char *at = bytes; size > 0;) {
    const ssize_t count = write_it ? send(fd, at, size, MSG_NOSIGNAL) : recv(fd, at, size, 0);
    if (count <= 0) return 0;
    at += count;
    size -= (size_t)count;
  }
  return 1;
}

int ncclGetVersion(int *version) {
  *version = 22803;
  return 0;
}
int ncclGetUniqueId(ncclUniqueId *id) {
  struct sockaddr_in at = place();
  socklen_t size = sizeof at;
  memset(id, 0, sizeof *id);
  listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&at, size) != 0 || listen(listener, 64) != 0) return 2;
  getsockname(listener, (struct sockaddr *)&at, &size);
  port = ntohs(at.sin_port);
  memcpy(id->internal, &port, sizeof port);
  return 0;
}
int ncclCommInitAll(void **communicators, int count, const int *devices) {
  if (is("fail")) return 2;
  while (is("hang")) pause();
  for (int i = 0; i < count; ++i) {
    if (devices[i] != i) return 4;
    communicators[i] = (void *)(uintptr_t)(i + 1);
  }
  ranks = own = count;
  return 0;
}
int ncclCommInitRank(void **communicator, int count, ncclUniqueId id, int rank) {
  if (is("fail")) return 2;
  while (is("hang")) pause();
  if (joining == 0) first = rank;
  if (rank != first + joining) return 4;
  memcpy(&port, id.internal, sizeof port);
  ranks = count;
  *communicator = (void *)(uintptr_t)(++joining);
  return 0;
}
static int join(void) {
  own = joining;
  joining = 0;
  const char *network = getenv("STANDIN_NCCL_NETWORK");
  const char *debug = getenv("NCCL_DEBUG");
  if (debug != NULL && strcmp(debug, "INFO") == 0) {
    printf("host:1:1 [0] NCCL INFO Using network %s\n", network != NULL ? network : "Socket");
    fflush(stdout);
  }
  if (first > 0) {
    struct sockaddr_in at = place();
    Hello hello = {first, own};
    links[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(links[0], (struct sockaddr *)&at, sizeof at) != 0) return 2;
    links_made = 1;
    return all(links[0], &hello, sizeof hello, 1) ? 0 : 2;
  }
  for (int there = own; there < ranks;) {
    Hello hello;
    links[links_made] = accept(listener, NULL, NULL);
    if (!all(links[links_made++], &hello, sizeof hello, 0)) return 2;
    there += hello.count;
  }
  return 0;
}
int ncclCommDestroy(void *communicator) { return communicator != NULL ? 0 : 4; }
int ncclGroupStart(void) {
  waiting = 0;
  return 0;
}
int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation,
                  void *communicator, void *stream) {
  (void)stream;
  if (type != 3 || operation != 0 || communicator != (void *)(uintptr_t)(waiting + 1)) return 4;
  calls[waiting].from = from;
  calls[waiting].to = to;
  calls[waiting++].count = count;
  return 0;
}
int ncclGroupEnd(void) {
  if (joining > 0) return join();
  if (waiting != own) return 5;
  const size_t count = calls[0].count, size = count * sizeof(uint32_t);
  const char *delay = getenv("STANDIN_NCCL_DELAY");
  uint32_t *sum = calloc(count, sizeof *sum), *other = malloc(size);
  for (int rank = 0; rank < own; ++rank) {
    for (size_t i = 0; i < count; ++i) sum[i] += calls[rank].from[i];
  }
  int status = 0;
  if (first > 0) {
    if (!all(links[0], sum, size, 1) || !all(links[0], sum, size, 0)) status = 2;
  } else {
    for (int link = 0; link < links_made; ++link) {
      if (!all(links[link], other, size, 0)) status = 2;
      for (size_t i = 0; i < count; ++i) sum[i] += other[i];
    }
    if (delay != NULL) usleep((useconds_t)atoi(delay) * 1000);
    for (int link = 0; link < links_made; ++link) {
      if (!all(links[link], sum, size, 1)) status = 2;
    }
  }
  for (int rank = 0; rank < own; ++rank) memcpy(calls[rank].to, sum, size);
  free(sum);
  free(other);
  if (is("wrong")) ++calls[own - 1].to[1];
  return status;
}
const char *ncclGetErrorString(int status) {
  return status == 2 ? "unhandled system error" : "invalid usage";
}
