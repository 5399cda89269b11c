// A stand-in for NVIDIA's NVML (libnvidia-ml.so.1) on machines without GPUs: the functions that
// `mlenv watch` calls, and those that tell the parts of GPUs that are split, by their documented C
// interface. Each line of the file that STANDIN_NVML
// names is a GPU, read anew at every question:
//     BUSY% MEMORY-BUSY% USED-MIB MIB POWER-MW LIMIT-MW CELSIUS REASONS(hex) RX-KB/s PID
// and one behind it that begins with MIG a part of it:
//     MIG UUID GPU-INSTANCE COMPUTE-INSTANCE
// A file that says `hang` never answers; one that is absent fails at nvmlInit_v2.
//
// It cannot show how real drivers time their figures, or what they leave out on which GPU.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kSuccess = 0, kInvalid = 2, kNotSupported = 3, kNotFound = 6, kDriverNotLoaded = 9, kMost = 16 };

struct gpu {
  unsigned busy, memory_busy, used_mib, mib, power, limit, celsius;
  unsigned long long reasons;
  unsigned received, pid;
  struct gpu* parts; /* of a GPU that is split; a part has a name, and no parts */
  unsigned part_count, gpu_instance, compute_instance;
  char uuid[64];
};
static struct gpu gpus[kMost];
static struct gpu parts[kMost][kMost];

static int read_all(void) {
  const char* path = getenv("STANDIN_NVML");
  FILE* file = path == NULL ? NULL : fopen(path, "re");
  if (file == NULL) return -1;
  char line[256];
  int count = 0;
  while (count < kMost && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "hang", 4) == 0) {
      for (;;) pause();
    }
    struct gpu part = {0};
    if (count > 0 && sscanf(line, "MIG %63s %u %u", part.uuid, &part.gpu_instance,
                            &part.compute_instance) == 3) {
      struct gpu* whole = &gpus[count - 1];
      if (whole->part_count < kMost) whole->parts[whole->part_count++] = part;
      continue;
    }
    struct gpu* g = &gpus[count];
    g->parts = parts[count];
    g->part_count = 0;
    snprintf(g->uuid, sizeof g->uuid, "GPU-%08x-0000-0000-0000-000000000000", (unsigned)count);
    if (sscanf(line, "%u %u %u %u %u %u %u %llx %u %u", &g->busy, &g->memory_busy, &g->used_mib,
               &g->mib, &g->power, &g->limit, &g->celsius, &g->reasons, &g->received,
               &g->pid) == 10) {
      ++count;
    }
  }
  fclose(file);
  return count;
}

const char* nvmlErrorString(int status) {
  return status == kDriverNotLoaded ? "Driver Not Loaded" : "Not Supported";
}
int nvmlInit_v2(void) { return read_all() < 0 ? kDriverNotLoaded : kSuccess; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  const int found = read_all();
  *count = found < 0 ? 0 : (unsigned)found;
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu** device) {
  if (index >= kMost) return kInvalid;
  *device = &gpus[index];
  return kSuccess;
}
int nvmlDeviceGetName(struct gpu* device, char* name, unsigned size) {
  snprintf(name, size, device->parts == NULL ? "Stand-in GPU MIG 1g.5gb" : "Stand-in GPU");
  return kSuccess;
}
int nvmlDeviceGetUUID(struct gpu* device, char* uuid, unsigned size) {
  snprintf(uuid, size, "%s", device->uuid);
  return kSuccess;
}
int nvmlDeviceGetMigMode(struct gpu* device, unsigned* current, unsigned* pending) {
  *current = *pending = device->part_count > 0;
  return kSuccess;
}
int nvmlDeviceGetMaxMigDeviceCount(struct gpu* device, unsigned* count) {
  *count = device->part_count > 0 ? 7 : 0;
  return kSuccess;
}
int nvmlDeviceGetMigDeviceHandleByIndex(struct gpu* device, unsigned index, struct gpu** part) {
  if (index >= device->part_count) return kNotFound;
  *part = &device->parts[index];
  return kSuccess;
}
int nvmlDeviceGetGpuInstanceId(struct gpu* device, unsigned* id) {
  *id = device->gpu_instance;
  return kSuccess;
}
int nvmlDeviceGetComputeInstanceId(struct gpu* device, unsigned* id) {
  *id = device->compute_instance;
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(struct gpu* device, unsigned* rates) {
  rates[0] = device->busy;
  rates[1] = device->memory_busy;
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo(struct gpu* device, unsigned long long* memory) {
  memory[0] = (unsigned long long)device->mib << 20;
  memory[1] = (unsigned long long)(device->mib - device->used_mib) << 20;
  memory[2] = (unsigned long long)device->used_mib << 20;
  return kSuccess;
}
int nvmlDeviceGetPowerUsage(struct gpu* device, unsigned* milliwatts) {
  *milliwatts = device->power;
  return kSuccess;
}
int nvmlDeviceGetEnforcedPowerLimit(struct gpu* device, unsigned* milliwatts) {
  *milliwatts = device->limit;
  return kSuccess;
}
int nvmlDeviceGetTemperature(struct gpu* device, unsigned sensor, unsigned* celsius) {
  if (sensor != 0) return kInvalid;
  *celsius = device->celsius;
  return kSuccess;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(struct gpu* device, unsigned long long* reasons) {
  *reasons = device->reasons;
  return kSuccess;
}
int nvmlDeviceGetPcieThroughput(struct gpu* device, unsigned counter, unsigned* kilobytes) {
  *kilobytes = counter == 1 ? device->received : 0;
  return kSuccess;
}

struct process_info {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};
int nvmlDeviceGetComputeRunningProcesses_v3(struct gpu* device, unsigned* count,
                                            struct process_info* processes) {
  if (device->pid == 0 || *count == 0) {
    *count = 0;
    return kSuccess;
  }
  *count = 1;
  processes[0] = (struct process_info){device->pid, (unsigned long long)device->used_mib << 20,
                                       ~0U, ~0U};
  return kSuccess;
}

struct process_use {
  unsigned pid;
  unsigned long long time;
  unsigned sm, memory, encoder, decoder;
};
int nvmlDeviceGetProcessUtilization(struct gpu* device, struct process_use* uses, unsigned* count,
                                    unsigned long long since) {
  if (device->pid == 0) return kNotSupported;
  if (*count < 2) return kInvalid;
  // The newest is not the last.
  uses[0] = (struct process_use){device->pid, since + 2, device->busy, 0, 0, 0};
  uses[1] = (struct process_use){device->pid, since + 1, 99, 0, 0, 0};
  *count = 2;
  return kSuccess;
}
