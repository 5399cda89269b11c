#include "runner/probe/measure.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "runner/probe/kernel.hpp"

namespace mlenv::probe {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::uint32_t kSeed = 0x9e3779b9;

std::uint32_t pattern(std::size_t index, std::uint32_t salt) {
  return static_cast<std::uint32_t>(index) * 2654435761U + salt;
}

/// Repeats `copy` until it took long enough to be measured; what one moved per second.
template <class Copy>
double copy_rate(const Cuda& cuda, std::size_t bytes, const Copy& copy) {
  constexpr std::chrono::milliseconds kLongEnough{100};
  constexpr int kAtOnce = 8;  // so that waiting for the end does not count
  constexpr int kMost = 1000;
  copy();
  cuda.check(cuda.synchronize(), "cuCtxSynchronize");  // the first one warms up
  const auto began = steady_clock::now();
  int times = 0;
  std::chrono::duration<double> took{};
  do {
    for (int i = 0; i < kAtOnce; ++i) copy();
    cuda.check(cuda.synchronize(), "cuCtxSynchronize");
    times += kAtOnce;
    took = steady_clock::now() - began;
  } while (took < kLongEnough && times < kMost);
  return static_cast<double>(bytes) * times / std::max(took.count(), 1e-9);
}

void fill_pattern(const HostMemory& memory, std::size_t words, std::uint32_t salt) {
  for (std::size_t i = 0; i < words; ++i) memory[i] = pattern(i, salt);
}

/// Empty when `memory` holds what `fill_pattern` put in, else where it does not.
std::string difference(const HostMemory& memory, std::size_t words, std::uint32_t salt) {
  for (std::size_t i = 0; i < words; ++i) {
    if (memory[i] != pattern(i, salt)) return "wrong at byte " + std::to_string(i * 4);
  }
  return {};
}

class LoadedModule {
 public:
  explicit LoadedModule(const Cuda& cuda) : cuda_(cuda) {
    cuda.check(cuda.load_module(&module_, kKernel), "cuModuleLoadData");
  }
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;
  ~LoadedModule() { cuda_.unload_module(module_); }
  Function function() const {
    Function found = nullptr;
    cuda_.check(cuda_.function(&found, module_, kKernelName), "cuModuleGetFunction");
    return found;
  }

 private:
  const Cuda& cuda_;
  Module module_ = nullptr;
};

void run_kernel(const Cuda& cuda, const Gpu& gpu, GpuReport& report) {
  constexpr std::uint32_t kWords = std::uint32_t{1} << 20;
  constexpr unsigned kThreads = 256;
  constexpr std::size_t kBytes = std::size_t{kWords} * 4;
  const LoadedModule module(cuda);
  Function function = module.function();
  const HostMemory host(cuda, kBytes);
  const DeviceMemory memory(cuda, gpu.context, kBytes);
  fill_pattern(host, kWords, 1);
  cuda.check(cuda.to_device(memory.address(), host.data(), kBytes, nullptr), "cuMemcpyHtoDAsync");
  Address data = memory.address();
  std::uint32_t count = kWords;
  std::uint32_t seed = kSeed;
  std::array<void*, 3> arguments = {&data, &count, &seed};
  cuda.check(cuda.launch(function, kWords / kThreads, 1, 1, kThreads, 1, 1, 0, nullptr,
                         arguments.data(), nullptr),
             "cuLaunchKernel");
  cuda.check(cuda.to_host(host.data(), memory.address(), kBytes, nullptr), "cuMemcpyDtoHAsync");
  cuda.check(cuda.synchronize(), "cuCtxSynchronize");
  report.kernel_right = true;
  for (std::uint32_t i = 0; i < kWords && *report.kernel_right; ++i) {
    report.kernel_right = host[i] == computed(pattern(i, 1), i, kSeed);
  }
  if (!*report.kernel_right) report.problem = "the kernel's result is wrong";
}

void measure_copies(const Cuda& cuda, const Gpu& gpu, std::size_t bytes, GpuReport& report) {
  const HostMemory host(cuda, bytes);
  const DeviceMemory first(cuda, gpu.context, bytes);
  const DeviceMemory second(cuda, gpu.context, bytes);
  fill_pattern(host, bytes / 4, 2);
  report.host_to_device = copy_rate(cuda, bytes, [&] {
    cuda.check(cuda.to_device(first.address(), host.data(), bytes, nullptr), "cuMemcpyHtoDAsync");
  });
  report.device_to_device = copy_rate(cuda, bytes, [&] {
    cuda.check(cuda.in_device(second.address(), first.address(), bytes, nullptr),
               "cuMemcpyDtoDAsync");
  });
  fill_pattern(host, bytes / 4, 3);
  report.device_to_host = copy_rate(cuda, bytes, [&] {
    cuda.check(cuda.to_host(host.data(), second.address(), bytes, nullptr), "cuMemcpyDtoHAsync");
  });
  const std::string wrong = difference(host, bytes / 4, 2);
  if (!wrong.empty()) report.problem = "what was copied to it and back is " + wrong;
}

std::string uuid_of(const Cuda& cuda, Device device) {
  std::array<unsigned char, 16> bytes{};
  if (cuda.device_uuid == nullptr || cuda.device_uuid(bytes.data(), device) != 0) return {};
  std::string text = "GPU";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    std::array<char, 3> digits{};
    (void)std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned>(bytes[i]));
    text += digits.data();
  }
  return text;
}

}  // namespace

DeviceMemory::DeviceMemory(const Cuda& cuda, Context context, std::size_t bytes)
    : cuda_(cuda), context_(context) {
  cuda.check(cuda.set_context(context), "cuCtxSetCurrent");
  cuda.check(cuda.allocate(&address_, bytes), "cuMemAlloc");
}

DeviceMemory::~DeviceMemory() {
  if (cuda_.set_context(context_) == 0) cuda_.free(address_);
}

HostMemory::HostMemory(const Cuda& cuda, std::size_t bytes) : cuda_(cuda) {
  constexpr unsigned kPortable = 1;  // CU_MEMHOSTALLOC_PORTABLE: for all contexts
  cuda.check(cuda.allocate_host(&data_, bytes, kPortable), "cuMemHostAlloc");
}

HostMemory::~HostMemory() { cuda_.free_host(data_); }

Gpu describe(const Cuda& cuda, GpuReport& report) {
  constexpr int kMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
  constexpr int kMinor = 76;
  Gpu gpu;
  cuda.check(cuda.device(&gpu.device, report.index), "cuDeviceGet");
  std::array<char, 256> name{};
  cuda.check(cuda.device_name(name.data(), static_cast<int>(name.size()) - 1, gpu.device),
             "cuDeviceGetName");
  report.name = name.data();
  report.uuid = uuid_of(cuda, gpu.device);
  int major = 0;
  int minor = 0;
  cuda.check(cuda.device_attribute(&major, kMajor, gpu.device), "cuDeviceGetAttribute");
  cuda.check(cuda.device_attribute(&minor, kMinor, gpu.device), "cuDeviceGetAttribute");
  report.compute_capability = std::to_string(major) + '.' + std::to_string(minor);
  std::size_t memory = 0;
  cuda.check(cuda.device_memory(&memory, gpu.device), "cuDeviceTotalMem");
  report.memory_bytes = memory;
  cuda.check(cuda.retain_context(&gpu.context, gpu.device), "cuDevicePrimaryCtxRetain");
  return gpu;
}

void measure(const Cuda& cuda, const Gpu& gpu, const Options& options, const Doing& doing,
             GpuReport& report) {
  const std::string which = " of GPU " + std::to_string(report.index);
  cuda.check(cuda.set_context(gpu.context), "cuCtxSetCurrent");
  doing("the kernel" + which);
  run_kernel(cuda, gpu, report);
  if (!report.problem.empty()) return;
  doing("the copies" + which);
  measure_copies(cuda, gpu, options.mebibytes * kMebibyte, report);
}

void measure(const Cuda& cuda, const Gpu& from, const Gpu& to, const Options& options,
             PairReport& report) {
  constexpr Status kEnabledAlready = 704;  // CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
  const std::size_t bytes = options.mebibytes * kMebibyte;
  int can = 0;
  cuda.check(cuda.can_access_peer(&can, from.device, to.device), "cuDeviceCanAccessPeer");
  report.peer_access = can != 0;
  cuda.check(cuda.set_context(from.context), "cuCtxSetCurrent");
  const HostMemory host(cuda, bytes);
  const DeviceMemory there(cuda, to.context, bytes);
  const DeviceMemory here(cuda, from.context, bytes);
  if (can != 0) {
    const Status status = cuda.enable_peer(to.context, 0);
    if (status != kEnabledAlready) cuda.check(status, "cuCtxEnablePeerAccess");
  }
  const auto salt = static_cast<std::uint32_t>(16 + report.from * 256 + report.to);
  fill_pattern(host, bytes / 4, salt);
  cuda.check(cuda.to_device(here.address(), host.data(), bytes, nullptr), "cuMemcpyHtoDAsync");
  report.rate = copy_rate(cuda, bytes, [&] {
    cuda.check(
        cuda.to_peer(there.address(), to.context, here.address(), from.context, bytes, nullptr),
        "cuMemcpyPeerAsync");
  });
  cuda.check(cuda.set_context(to.context), "cuCtxSetCurrent");
  fill_pattern(host, bytes / 4, salt + 1);
  cuda.check(cuda.to_host(host.data(), there.address(), bytes, nullptr), "cuMemcpyDtoHAsync");
  cuda.check(cuda.synchronize(), "cuCtxSynchronize");
  const std::string wrong = difference(host, bytes / 4, salt);
  if (!wrong.empty()) report.problem = "what was copied from one to the other is " + wrong;
}

}  // namespace mlenv::probe
