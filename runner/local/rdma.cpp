#include "runner/local/rdma.hpp"

#include <sys/resource.h>
#include <algorithm>

#include "base/error.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kRdmaFolder = "dev/infiniband";

bool is_rdma_device(const std::string& name) {
  return name == "rdma_cm" || name.starts_with("uverbs") || name.starts_with("umad");
}

/// Sorted.
std::vector<fs::path> devices_below(const fs::path& root) {
  std::error_code error;
  std::vector<fs::path> devices;
  for (const auto& entry : fs::directory_iterator(root / kRdmaFolder, error)) {
    if (is_rdma_device(entry.path().filename())) devices.push_back(entry.path());
  }
  std::sort(devices.begin(), devices.end());
  return devices;
}

/// What this process may hand on; nothing: unlimited.
std::optional<std::uint64_t> most_locked() {
  rlimit now{};
  ::getrlimit(RLIMIT_MEMLOCK, &now);
  if (now.rlim_max == RLIM_INFINITY) return std::nullopt;
  // Root may raise it, but not in every container (CAP_SYS_RESOURCE).
  const rlimit raised{now.rlim_cur, RLIM_INFINITY};
  if (::setrlimit(RLIMIT_MEMLOCK, &raised) == 0) return std::nullopt;
  return now.rlim_max;
}

}  // namespace

bool has_rdma(const fs::path& root) { return !devices_below(root).empty(); }

void add_rdma(JobOptions& options, CdiEdits& edits, const fs::path& root) {
  const std::vector<fs::path> devices = devices_below(root);
  if (devices.empty()) {
    throw failure("no-rdma", "this machine has no InfiniBand or RoCE device")
        .because("there is no `/dev/infiniband/uverbs*`")
        .hint("leave `--rdma` out, or let root load the driver (`modprobe ib_uverbs`)");
  }
  for (const fs::path& device : devices) {
    CdiNode node;
    node.path = (fs::path("/") / kRdmaFolder / device.filename()).string();
    node.host_path = device.string();
    edits.nodes.push_back(std::move(node));
  }
  options.rdma = true;
  const bool is_set = std::any_of(options.ulimits.begin(), options.ulimits.end(),
                                  [](const Ulimit& one) { return one.name == "memlock"; });
  if (!is_set) options.ulimits.push_back({"memlock", most_locked(), most_locked()});
}

}  // namespace mlenv
