#pragma once
// Asks GPUs through the driver, in this process. Each function fills a report in as far as it gets,
// and says in `problem` why no farther.
#include <functional>
#include <string>

#include "runner/probe/cuda.hpp"
#include "runner/probe/options.hpp"
#include "runner/probe/report.hpp"

namespace mlenv::probe {

/// Told before anything that may hang.
using Doing = std::function<void(const std::string&)>;

/// A GPU that is in use by this process: its context, kept for the end.
struct Gpu {
  Device device = 0;
  Context context = nullptr;  ///< null: it could not be had
};

/// What the driver says of a GPU; takes hold of it. Throws ApiError when it is not there at all.
Gpu describe(const Cuda& cuda, GpuReport& report);
/// The kernel, the three bandwidths; every copy is checked.
void measure(const Cuda& cuda, const Gpu& gpu, const Options& options, const Doing& doing,
             GpuReport& report);
/// From the one to the other.
void measure(const Cuda& cuda, const Gpu& from, const Gpu& to, const Options& options,
             PairReport& report);

/// Memory of a GPU, of its context that is current then.
class DeviceMemory {
 public:
  DeviceMemory(const Cuda& cuda, Context context, std::size_t bytes);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory();
  Address address() const { return address_; }

 private:
  const Cuda& cuda_;
  Context context_;
  Address address_ = 0;
};

/// Page-locked memory of the host, as words.
class HostMemory {
 public:
  HostMemory(const Cuda& cuda, std::size_t bytes);
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory();
  void* data() const { return data_; }
  std::uint32_t& operator[](std::size_t index) const {
    return static_cast<std::uint32_t*>(data_)[index];
  }

 private:
  const Cuda& cuda_;
  void* data_ = nullptr;
};

}  // namespace mlenv::probe
