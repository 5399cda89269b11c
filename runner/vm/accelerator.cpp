#include "runner/vm/accelerator.hpp"

#include <fcntl.h>
#include <cerrno>
#include <chrono>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace mlenv {

AcceleratorChoice choose_accelerator(const std::string& problem,
                                     const std::optional<SeenKvm>& seen) {
  if (!problem.empty()) return {Accelerator::tcg, problem, true};
  if (seen && !seen->works) return {Accelerator::tcg, seen->why, true};
  return {Accelerator::kvm, "it works here", seen.has_value()};
}

std::string kvm_problem() {
  const Fd fd{::open("/dev/kvm", O_RDWR | O_CLOEXEC)};
  if (fd) return {};
  if (errno == ENOENT) return "this machine has no /dev/kvm";
  if (errno == EACCES || errno == EPERM) return "this user may not open /dev/kvm";
  return "/dev/kvm cannot be opened: " + errno_text(errno);
}

KvmMemory::KvmMemory(const fs::path& folder, const std::string& qemu) : folder_(folder) {
  const std::string boot = read_file_if_exists("/proc/sys/kernel/random/boot_id").value_or("");
  name_ = Digest::of(fmt::format("mlenv.kvm/1\n{}\n{}\n", trim(boot), qemu)).hex();
}

std::optional<SeenKvm> KvmMemory::read() const {
  const std::optional<std::string> text = folder_.read(name_);
  if (!text) return std::nullopt;
  constexpr std::string_view kWorks = "works\n";
  if (*text == kWorks) return SeenKvm{true, {}};
  return SeenKvm{false, *text};
}

void KvmMemory::write(const SeenKvm& seen) const {
  constexpr std::chrono::hours kMonth{24 * 30};
  folder_.forget_older_than(kMonth);
  folder_.write(name_, seen.works ? "works\n" : seen.why);
}

}  // namespace mlenv
