#include "runner/vm/accelerator.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <cerrno>
#include <charconv>
#include <utility>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace {

using std::chrono::seconds;

/// With KVM a guest is there within a second; the first time it may be slow for other reasons.
constexpr seconds kFirstPatience{8};
/// Where KVM worked before, or is given a second chance.
constexpr seconds kKvmPatience{20};
constexpr seconds kEmulationPatience{120};

constexpr std::string_view kWorks = "works\n";
constexpr std::string_view kFailed = "failed";

template <class Number>
Number number_or_zero(std::string_view text) {
  Number value{};
  (void)std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// `failed COUNT TIME`, then why.
std::string render(const SeenKvm& seen) {
  if (seen.works) return std::string(kWorks);
  return fmt::format("{} {} {}\n{}", kFailed, seen.failures, seen.at, seen.why);
}

std::optional<SeenKvm> parse(std::string_view text) {
  if (text == kWorks) return SeenKvm{true, {}};
  const std::string_view head = text.substr(0, text.find('\n'));
  const std::vector<std::string_view> words = split(head, ' ');
  constexpr std::size_t kWords = 3;
  if (words.size() != kWords || words[0] != kFailed || head.size() == text.size()) {
    return std::nullopt;
  }
  return SeenKvm{false, std::string(text.substr(head.size() + 1)),
                 number_or_zero<std::uint64_t>(words[1]), number_or_zero<std::int64_t>(words[2])};
}

}  // namespace

SeenKvm SeenKvm::failed(const std::optional<SeenKvm>& before, std::string why, std::int64_t now) {
  return {false, std::move(why), before ? before->failures + 1 : 1, now};
}

seconds SeenKvm::rest(std::int64_t now) const {
  if (works || at > now) return seconds{0};  // the clock was set back: nobody knows how long ago
  const seconds whole = failures > 1 ? std::chrono::hours{24} : std::chrono::hours{1};
  return whole - seconds{now - at};
}

AcceleratorChoice emulation(std::string why) {
  return {Accelerator::tcg, std::move(why), kEmulationPatience};
}

AcceleratorChoice choose_accelerator(const std::string& problem, const std::optional<SeenKvm>& seen,
                                     std::int64_t now) {
  if (!problem.empty()) return emulation(problem);
  if (seen && seen->rest(now).count() > 0) return emulation(seen->why);
  return {Accelerator::kvm, "it works here", seen ? kKvmPatience : kFirstPatience};
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
  struct stat program {};
  (void)::stat(qemu.c_str(), &program);
  name_ = Digest::of(fmt::format("mlenv.kvm/2\n{}\n{}\n{} {} {}\n", trim(boot), qemu,
                                 program.st_size, program.st_mtim.tv_sec, program.st_mtim.tv_nsec))
              .hex();
  file_ = folder / name_;
}

std::optional<SeenKvm> KvmMemory::read() const {
  const std::optional<std::string> text = folder_.read(name_);
  return text ? parse(*text) : std::nullopt;
}

void KvmMemory::write(const SeenKvm& seen) const {
  constexpr std::chrono::hours kMonth{24 * 30};
  folder_.forget_older_than(kMonth);
  folder_.write(name_, render(seen));
}

}  // namespace mlenv
