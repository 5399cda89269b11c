#pragma once
// What the probe finds out, and its JSON (schema mlenv.gpu-probe/1). Nothing in runner/probe uses
// more than the C++ library: mlenv-gpu-probe must start in images that hold none of mlenv's.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv::probe {

using Rate = std::optional<double>;  ///< bytes per second; nullopt: not measured

struct GpuReport {
  int index = 0;  ///< as CUDA counts: CUDA_VISIBLE_DEVICES heeded
  std::string name;
  std::string uuid;                ///< empty: the driver does not say
  std::string compute_capability;  ///< `9.0`
  std::uint64_t memory_bytes = 0;
  std::optional<bool> kernel_right;  ///< nullopt: it did not come to that
  Rate host_to_device;
  Rate device_to_host;
  Rate device_to_device;  ///< bytes copied, each of which is read and written
  std::string problem;    ///< empty: none
};

struct PairReport {
  int from = 0;
  int to = 0;
  std::optional<bool> peer_access;  ///< false: copies go by way of the host
  Rate rate;
  std::string problem;
};

struct NcclReport {
  std::string library;
  std::string version;  ///< `2.28.3`
  int ranks = 0;
  std::uint64_t bytes = 0;  ///< of each rank
  std::optional<bool> sums_right;
  std::optional<double> seconds;  ///< of one all-reduce: the shortest
  std::string problem;
  std::vector<double> each_seconds{};  ///< in the order in which they were
};

struct Report {
  std::string library;       ///< the file of libcuda
  std::string cuda_version;  ///< that the driver knows: `13.0`
  std::vector<GpuReport> gpus;
  std::vector<PairReport> pairs;
  std::optional<NcclReport> nccl;
};

enum class Verdict {
  works,
  no_driver,        ///< no libcuda, or one that lacks what every driver since CUDA 11 has
  no_gpu,           ///< the driver has none to offer (errors 100, 101)
  driver_mismatch,  ///< kernel module and libcuda are of different drivers (803)
  driver_too_old,   ///< for this libcuda (35, 36)
  compat_refused,   ///< a libcuda for forward compatibility that may not be used (804)
  not_ready,        ///< Fabric Manager does not run, or is not done (802)
  busy,             ///< another program has the GPU or its memory (46, 2)
  driver_fails,     ///< the driver cannot be started: any other error
  fails             ///< a GPU, a path between two or NCCL does not do what it should
};
std::string_view name_of(Verdict verdict);
/// The other way; `fails` for any other word.
Verdict verdict_named(std::string_view name);
/// 0 for `works`, else 3.
int exit_status(Verdict verdict);

/// Of what was found, as far as it goes: `works` or `fails`, with the first problem.
struct Judgement {
  Verdict verdict = Verdict::works;
  std::string reason;  ///< empty where it works
  std::string advice;  ///< what to do; empty: nothing that is known
};
Judgement judge(const Report& report);

/// What one rank sends through each link, which is comparable with hardware's figures whatever the
/// number of ranks: bytes/seconds * 2(n-1)/n (nccl-tests, "PERFORMANCE.md", all-reduce). nullopt
/// with fewer than two ranks, where nothing is sent.
Rate bus_rate(std::uint64_t bytes, double seconds, int ranks);

/// A JSON text. Control characters are escaped; bytes beyond ASCII, which no driver is known to
/// send, become `?`.
std::string json_text(std::string_view text);
/// The report as members of a JSON object, without its braces, on one line.
std::string members_of(const Report& report);
/// The whole answer, on one line.
std::string answer_of(const Judgement& judgement, std::string_view members);

}  // namespace mlenv::probe
