/* A libnccl.so.2 beside the stand-in of libcuda: memory of all GPUs is the host's, so that it adds up what
 * lies there when the group ends. STANDIN_NCCL: `wrong` sums, `hang` at the start, `fail`. It cannot show
 * that a real NCCL finds its way between GPUs. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
  const uint32_t *from;
  uint32_t *to;
  size_t count;
} calls[64];
static int waiting;
static int ranks;

static int is(const char *name) {
  const char *value = getenv("STANDIN_NCCL");
  return value != NULL && strcmp(value, name) == 0;
}
int ncclGetVersion(int *version) {
  *version = 22803;
  return 0;
}
int ncclCommInitAll(void **communicators, int count, const int *devices) {
  if (is("fail")) return 2;
  while (is("hang")) pause();
  for (int i = 0; i < count; ++i) {
    if (devices[i] != i) return 4;
    communicators[i] = (void *)(uintptr_t)(i + 1);
  }
  ranks = count;
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
  if (waiting != ranks) return 5;
  for (size_t i = 0; i < calls[0].count; ++i) {
    uint32_t sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += calls[rank].from[i];
    for (int rank = 0; rank < ranks; ++rank) calls[rank].to[i] = sum;
  }
  if (is("wrong")) ++calls[ranks - 1].to[1];
  return 0;
}
const char *ncclGetErrorString(int status) {
  return status == 2 ? "unhandled system error" : "invalid usage";
}
