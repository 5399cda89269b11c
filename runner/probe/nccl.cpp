#include "runner/probe/nccl.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

namespace mlenv::probe {
namespace {

using Clock = std::chrono::steady_clock;
using Communicator = void*;  // ncclComm_t
constexpr int kUint32 = 3;   // ncclUint32
constexpr int kSum = 0;      // ncclSum

struct Nccl {
  explicit Nccl(const std::vector<std::string>& names) : library(names) {
    find(version, "ncclGetVersion");
    find(init_all, "ncclCommInitAll");
    find(destroy, "ncclCommDestroy");
    find(group_start, "ncclGroupStart");
    find(group_end, "ncclGroupEnd");
    find(all_reduce, "ncclAllReduce");
    error_text = reinterpret_cast<decltype(error_text)>(library.find("ncclGetErrorString"));
  }
  template <class Pointer>
  void find(Pointer& into, const char* name) const {
    into = reinterpret_cast<Pointer>(library.find(name));
    if (into == nullptr) throw LibraryError(library.file() + " has no " + name);
  }
  void check(int status, const char* what) const {
    if (status == 0) return;
    const char* words = error_text != nullptr ? error_text(status) : nullptr;
    throw ApiError(std::string(what) + ": " + (words != nullptr ? words : "error") + " (" +
                       std::to_string(status) + ")",
                   status);
  }

  Shared library;
  int (*version)(int*) = nullptr;
  int (*init_all)(Communicator*, int, const int*) = nullptr;
  int (*destroy)(Communicator) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int, int, Communicator, Stream) = nullptr;
  const char* (*error_text)(int) = nullptr;
};

std::uint32_t word_of(std::size_t index, std::size_t rank) {
  return static_cast<std::uint32_t>(index * 2654435761U + rank * 40503U + 1);
}

/// One rank's memory and communicator for each GPU.
class Ranks {
 public:
  Ranks(const Cuda& cuda, const Nccl& nccl, const std::vector<Gpu>& gpus, std::size_t words)
      : cuda_(cuda), nccl_(nccl), gpus_(gpus), words_(words), host_(cuda, words * 4) {
    std::vector<int> devices;
    for (const Gpu& gpu : gpus) {
      devices.push_back(gpu.device);
      from_.push_back(std::make_unique<DeviceMemory>(cuda, gpu.context, words * 4));
      to_.push_back(std::make_unique<DeviceMemory>(cuda, gpu.context, words * 4));
    }
    communicators_.resize(gpus.size());
    nccl.check(nccl.init_all(communicators_.data(), static_cast<int>(gpus.size()), devices.data()),
               "ncclCommInitAll");
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks() {
    for (Communicator one : communicators_) {
      if (one != nullptr) nccl_.destroy(one);
    }
  }

  void load() const {
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
      for (std::size_t i = 0; i < words_; ++i) host_[i] = word_of(i, rank);
      enter(rank);
      cuda_.check(cuda_.to_device(from_[rank]->address(), host_.data(), words_ * 4, nullptr),
                  "cuMemcpyHtoDAsync");
      cuda_.check(cuda_.synchronize(), "cuCtxSynchronize");
    }
  }

  void reduce() const {
    nccl_.check(nccl_.group_start(), "ncclGroupStart");
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
      enter(rank);
      nccl_.check(
          nccl_.all_reduce(as_pointer(from_[rank]->address()), as_pointer(to_[rank]->address()),
                           words_, kUint32, kSum, communicators_[rank], nullptr),
          "ncclAllReduce");
    }
    nccl_.check(nccl_.group_end(), "ncclGroupEnd");
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
      enter(rank);
      cuda_.check(cuda_.synchronize(), "cuCtxSynchronize");
    }
  }

  /// Empty where every rank has the sums.
  std::string difference() const {
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
      enter(rank);
      cuda_.check(cuda_.to_host(host_.data(), to_[rank]->address(), words_ * 4, nullptr),
                  "cuMemcpyDtoHAsync");
      cuda_.check(cuda_.synchronize(), "cuCtxSynchronize");
      for (std::size_t i = 0; i < words_; ++i) {
        std::uint32_t sum = 0;
        for (std::size_t one = 0; one < gpus_.size(); ++one) sum += word_of(i, one);
        if (host_[i] != sum) {
          return "the sum on rank " + std::to_string(rank) + " is wrong at byte " +
                 std::to_string(i * 4);
        }
      }
    }
    return {};
  }

 private:
  static void* as_pointer(Address address) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the two libraries name one address in two ways
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  }
  void enter(std::size_t rank) const {
    cuda_.check(cuda_.set_context(gpus_[rank].context), "cuCtxSetCurrent");
  }

  const Cuda& cuda_;
  const Nccl& nccl_;
  const std::vector<Gpu>& gpus_;
  std::size_t words_;
  HostMemory host_;
  std::vector<std::unique_ptr<DeviceMemory>> from_;
  std::vector<std::unique_ptr<DeviceMemory>> to_;
  std::vector<Communicator> communicators_;
};

/// The shortest of a few: what the machine can do, whatever else went on.
double seconds_of(const Ranks& ranks) {
  constexpr int kTimes = 5;
  double shortest = 0;
  for (int i = 0; i < kTimes; ++i) {
    const auto began = Clock::now();
    ranks.reduce();
    const std::chrono::duration<double> took = Clock::now() - began;
    if (i == 0 || took.count() < shortest) shortest = took.count();
  }
  return std::max(shortest, 1e-9);
}

}  // namespace

std::string nccl_version(int number) {
  const bool early = number < 10000;
  const int major = early ? number / 1000 : number / 10000;
  const int minor = early ? number / 100 % 10 : number / 100 % 100;
  return std::to_string(major) + '.' + std::to_string(minor) + '.' + std::to_string(number % 100);
}

NcclReport reduce_over(const Cuda& cuda, const std::vector<Gpu>& gpus, const Options& options,
                       const Doing& doing) {
  NcclReport report;
  report.ranks = static_cast<int>(gpus.size());
  report.bytes = options.mebibytes << 20;
  try {
    std::vector<std::string> names = {options.nccl_library};
    if (options.nccl_library.empty()) {
      names = {"libnccl.so.2", "/opt/venv/lib/python3/site-packages/nvidia/nccl/lib/libnccl.so.2"};
    }
    const Nccl nccl(names);
    report.library = nccl.library.file();
    int number = 0;
    nccl.check(nccl.version(&number), "ncclGetVersion");
    report.version = nccl_version(number);
    doing("NCCL's start on " + std::to_string(gpus.size()) + " GPUs");
    const Ranks ranks(cuda, nccl, gpus, report.bytes / 4);
    ranks.load();
    doing("NCCL's all-reduce");
    ranks.reduce();  // the first one sets connections up
    report.problem = ranks.difference();
    report.sums_right = report.problem.empty();
    if (*report.sums_right) report.seconds = seconds_of(ranks);
  } catch (const std::runtime_error& error) {
    report.problem = error.what();
  }
  return report;
}

}  // namespace mlenv::probe
