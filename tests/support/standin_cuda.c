/* A libcuda.so.1 for machines without a GPU: it answers as a driver would that has STANDIN_GPUS GPUs (2),
 * whose memory is the host's, and which computes the probe's one kernel itself. STANDIN_MODE makes it a
 * sick one:
 *   init-N    cuInit answers N, as real drivers do: 100 no device, 35 too old, 803, 804
 *   none      a driver without a GPU
 *   hang, crash, exit    in cuInit; hang-kernel, crash-kernel when the kernel is launched
 *   wrong     the kernel's result is wrong; corrupt: copies to the host are
 *   ptx       the kernel is refused (222); memory: there is none (2)
 *   no-peer   no GPU reaches another directly; noisy: prints while it answers
 *   nameless  GPUs have names that could harm a terminal or JSON
 * What it cannot show: whether the PTX is right (ptxas says so), that calls are made in the order and
 * from the contexts that a real driver wants, asynchronous failures, and anything about speed. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int CUresult;
typedef unsigned long long CUdeviceptr;

static int contexts[64];
static void *current;

static const char *mode(void) {
  const char *value = getenv("STANDIN_MODE");
  return value != NULL ? value : "";
}
static int is(const char *name) { return strcmp(mode(), name) == 0; }
static int gpus(void) {
  const char *value = getenv("STANDIN_GPUS");
  return is("none") ? 0 : value != NULL ? atoi(value) : 2;
}
static void hang(void) {
  for (;;) pause();
}

CUresult cuInit(unsigned flags) {
  (void)flags;
  if (is("noisy")) {
    puts("verdict works\tthe driver says so itself\t");
    fflush(stdout);
  }
  if (is("hang")) hang();
  if (is("crash")) raise(SIGSEGV);
  if (is("exit")) _exit(0);
  return strncmp(mode(), "init-", 5) == 0 ? atoi(mode() + 5) : 0;
}
CUresult cuDriverGetVersion(int *version) {
  *version = 13000;
  return 0;
}
CUresult cuDeviceGetCount(int *count) {
  *count = gpus();
  return 0;
}
CUresult cuDeviceGet(int *device, int index) {
  *device = index;
  return index < gpus() ? 0 : 101;
}
CUresult cuDeviceGetName(char *name, int length, int device) {
  (void)device;
  snprintf(name, (size_t)length, "%s", is("nameless") ? "a\"b\\c\033[2J\nd\xff" : "Stand-in");
  return 0;
}
CUresult cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
  for (int i = 0; i < 16; ++i) uuid[i] = (unsigned char)(i * 16 + device);
  return 0;
}
CUresult cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  *value = attribute == 75 ? 9 : 0;
  return 0;
}
CUresult cuDeviceTotalMem_v2(size_t *bytes, int device) {
  (void)device;
  *bytes = (size_t)80 << 30;
  return 0;
}
CUresult cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = &contexts[device];
  ++contexts[device];
  return 0;
}
CUresult cuDevicePrimaryCtxRelease_v2(int device) {
  --contexts[device];
  return 0;
}
CUresult cuCtxSetCurrent(void *context) {
  current = context;
  return 0;
}
CUresult cuCtxSynchronize(void) { return current != NULL ? 0 : 201; }
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  if (current == NULL) return 201;
  if (is("memory")) return 2;
  *address = (CUdeviceptr)(uintptr_t)malloc(bytes);
  return *address != 0 ? 0 : 2;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  free((void *)(uintptr_t)address);
  return 0;
}
CUresult cuMemHostAlloc(void **data, size_t bytes, unsigned flags) {
  (void)flags;
  *data = malloc(bytes);
  return *data != NULL ? 0 : 2;
}
CUresult cuMemFreeHost(void *data) {
  free(data);
  return 0;
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, void *stream) {
  (void)stream;
  memcpy((void *)(uintptr_t)to, from, bytes);
  return 0;
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, void *stream) {
  (void)stream;
  memcpy(to, (void *)(uintptr_t)from, bytes);
  if (is("corrupt") && bytes != 4u << 20) ((unsigned char *)to)[4096] ^= 1;
  return 0;
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, void *stream) {
  (void)stream;
  memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
  return 0;
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, void *there, CUdeviceptr from, void *here, size_t bytes,
                           void *stream) {
  return there == here ? 1 : cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}
CUresult cuDeviceCanAccessPeer(int *can, int from, int to) {
  *can = from != to && !is("no-peer");
  return 0;
}
CUresult cuCtxEnablePeerAccess(void *context, unsigned flags) {
  (void)flags;
  static int enabled;
  return context == current ? 1 : enabled++ > 1 ? 704 : 0;
}
CUresult cuModuleLoadData(void **module, const void *image) {
  if (is("ptx")) return 222;
  *module = (void *)(uintptr_t)(strstr(image, ".entry mlenv_probe") != NULL);
  return *module != NULL ? 0 : 218;
}
CUresult cuModuleUnload(void *module) { return module != NULL ? 0 : 1; }
CUresult cuModuleGetFunction(void **function, void *module, const char *name) {
  *function = module;
  return strcmp(name, "mlenv_probe") == 0 ? 0 : 500;
}
#ifndef STANDIN_WITHOUT_LAUNCH
CUresult cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        void *stream, void **arguments, void **extra) {
  (void)shared, (void)stream, (void)extra;
  if (is("hang-kernel")) hang();
  if (is("crash-kernel")) raise(SIGSEGV);
  if (function == NULL || grid_y * grid_z * block_y * block_z != 1) return 1;
  uint32_t *data = (uint32_t *)(uintptr_t)*(CUdeviceptr *)arguments[0];
  const uint32_t count = *(uint32_t *)arguments[1];
  const uint32_t seed = *(uint32_t *)arguments[2];
  for (uint32_t i = 0; i < grid_x * block_x && i < count; ++i) {
    data[i] = data[i] * 1664525u + (i ^ seed);
  }
  if (is("wrong")) ++data[count - 1];
  return 0;
}
#endif
CUresult cuGetErrorName(CUresult status, const char **name) {
  *name = status == 218 ? "CUDA_ERROR_INVALID_PTX" : NULL;
  return *name != NULL ? 0 : 1;
}
