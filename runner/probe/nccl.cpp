#include "runner/probe/nccl.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

#include "runner/probe/meeting.hpp"

namespace mlenv::probe {
namespace {

using std::chrono::steady_clock;
using Communicator = void*;  // ncclComm_t
constexpr int kUint32 = 3;   // ncclUint32
constexpr int kSum = 0;      // ncclSum

struct Nccl {
  explicit Nccl(const std::vector<std::string>& names) : library(names) {
    find(version, "ncclGetVersion");
    find(init_all, "ncclCommInitAll");
    find(unique_id, "ncclGetUniqueId");
    find(init_rank, "ncclCommInitRank");
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
  int (*unique_id)(UniqueId*) = nullptr;
  int (*init_rank)(Communicator*, int, UniqueId, int) = nullptr;  // by value, as nccl.h has it
  int (*destroy)(Communicator) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int, int, Communicator, Stream) = nullptr;
  const char* (*error_text)(int) = nullptr;
};

std::uint32_t word_of(std::size_t index, std::size_t rank) {
  return static_cast<std::uint32_t>(index * 2654435761U + rank * 40503U + 1);
}

/// Of word_of() over so many ranks.
std::uint32_t sum_of(std::size_t index, std::size_t ranks) {
  std::uint32_t sum = 0;
  for (std::size_t one = 0; one < ranks; ++one) sum += word_of(index, one);
  return sum;
}

/// One rank's memory and communicator for each GPU of this process.
class Ranks {
 public:
  Ranks(const Cuda& cuda, const Nccl& nccl, const std::vector<Gpu>& gpus, std::size_t words)
      : cuda_(cuda), nccl_(nccl), gpus_(gpus), words_(words), host_(cuda, words * 4) {
    for (const Gpu& gpu : gpus) {
      from_.push_back(std::make_unique<DeviceMemory>(cuda, gpu.context, words * 4));
      to_.push_back(std::make_unique<DeviceMemory>(cuda, gpu.context, words * 4));
    }
    communicators_.resize(gpus.size());
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks() {
    for (Communicator one : communicators_) {
      if (one != nullptr) nccl_.destroy(one);
    }
  }

  /// These GPUs alone.
  void join() {
    std::vector<int> devices;
    for (const Gpu& gpu : gpus_) devices.push_back(gpu.device);
    all_ = gpus_.size();
    nccl_.check(nccl_.init_all(communicators_.data(), static_cast<int>(all_), devices.data()),
                "ncclCommInitAll");
  }
  /// With those of other processes.
  void join(const Roll& roll) {
    before_ = static_cast<std::size_t>(roll.gpus_before);
    all_ = static_cast<std::size_t>(roll.gpus);
    nccl_.check(nccl_.group_start(), "ncclGroupStart");
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
      enter(rank);
      nccl_.check(nccl_.init_rank(&communicators_[rank], roll.gpus, roll.id,
                                  roll.gpus_before + static_cast<int>(rank)),
                  "ncclCommInitRank");
    }
    nccl_.check(nccl_.group_end(), "ncclGroupEnd");
  }

  void load() const {
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
      for (std::size_t i = 0; i < words_; ++i) host_[i] = word_of(i, before_ + rank);
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
      std::uint32_t sum = sum_of(0, all_);
      const std::uint32_t step = sum_of(1, all_) - sum;
      for (std::size_t i = 0; i < words_; ++i) {
        if (host_[i] != sum) {
          return "the sum on rank " + std::to_string(before_ + rank) + " is wrong at byte " +
                 std::to_string(i * 4);
        }
        sum += step;  // word_of() grows by the same with each index
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
  std::size_t before_ = 0;  ///< ranks of other processes
  std::size_t all_ = 0;     ///< ranks
  HostMemory host_;
  std::vector<std::unique_ptr<DeviceMemory>> from_;
  std::vector<std::unique_ptr<DeviceMemory>> to_;
  std::vector<Communicator> communicators_;
};

/// The shortest of a few counts: what the machine can do, whatever else went on.
void measure(const Ranks& ranks, NcclReport& report) {
  constexpr int kTimes = 5;
  for (int i = 0; i < kTimes; ++i) {
    const auto began = steady_clock::now();
    ranks.reduce();
    const std::chrono::duration<double> took = steady_clock::now() - began;
    report.each_seconds.push_back(std::max(took.count(), 1e-9));
  }
  report.seconds = *std::min_element(report.each_seconds.begin(), report.each_seconds.end());
}

/// Where the ranks of other nodes are, if there are to be any.
void join_ranks(Ranks& ranks, const Nccl& nccl, const Options& options, NcclReport& report,
                const Doing& doing) {
  if (!options.across) {
    doing("NCCL's start on " + std::to_string(report.ranks) + " GPUs");
    return ranks.join();
  }
  constexpr std::chrono::seconds kPatience{60};
  const Seat seat = seat_from_environment();
  UniqueId id{};
  if (seat.rank == 0) nccl.check(nccl.unique_id(&id), "ncclGetUniqueId");
  doing("waiting for the ranks of the other nodes");
  const Roll roll = call_roll(seat, report.ranks, id, kPatience);
  report.ranks = roll.gpus;
  doing("NCCL's start on " + std::to_string(roll.gpus) + " GPUs of " + std::to_string(seat.world) +
        " nodes");
  ranks.join(roll);
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
    Ranks ranks(cuda, nccl, gpus, report.bytes / 4);
    join_ranks(ranks, nccl, options, report, doing);
    ranks.load();
    doing("NCCL's all-reduce");
    ranks.reduce();  // the first one sets connections up
    report.problem = ranks.difference();
    report.sums_right = report.problem.empty();
    if (*report.sums_right) measure(ranks, report);
  } catch (const std::exception& error) {
    report.problem = error.what();
  }
  return report;
}

}  // namespace mlenv::probe
