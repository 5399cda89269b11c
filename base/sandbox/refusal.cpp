#include "base/sandbox/refusal.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>

#include "base/files.hpp"

namespace mlenv::sandbox {
namespace {

struct Refusal {
  std::string reason;
  std::string hint;
};

std::string setting(const Surroundings& where, const char* path) {
  std::string text = read_file_if_exists(where.root / path).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

bool system_calls_are_filtered(const Surroundings& where) {
  return setting(where, "proc/self/status").find("Seccomp:\t2") != std::string::npos;
}

bool in_container(const Surroundings& where) {
  return where.in_kubernetes || ::access((where.root / ".dockerenv").c_str(), F_OK) == 0 ||
         ::access((where.root / "run/.containerenv").c_str(), F_OK) == 0;
}

std::optional<Refusal> namespaces_switched_off(const Surroundings& where) {
  if (setting(where, "proc/sys/user/max_user_namespaces") == "0") {
    return Refusal{"user namespaces are switched off (`user.max_user_namespaces` is 0)",
                   "as root: `sysctl -w user.max_user_namespaces=15000`"};
  }
  if (setting(where, "proc/sys/kernel/unprivileged_userns_clone") == "0" && !where.is_root) {
    return Refusal{
        "ordinary users may not make user namespaces (`kernel.unprivileged_userns_clone` is 0)",
        "as root: `sysctl -w kernel.unprivileged_userns_clone=1`"};
  }
  if (setting(where, "proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" &&
      !where.is_root) {
    return Refusal{
        "AppArmor gives programs without a profile no rights in user namespaces "
        "(`kernel.apparmor_restrict_unprivileged_userns` is 1)",
        "as root: give mlenv its AppArmor profile, as its Debian package does (docs/sandbox.md), "
        "or "
        "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"};
  }
  return std::nullopt;
}

std::optional<Refusal> diagnose(const std::string& text, const Surroundings& where) {
  if (std::optional<Refusal> off = namespaces_switched_off(where)) return off;
  if (text.find("another supervisor") != std::string::npos) {
    return Refusal{"this process itself runs in such a sandbox", "run mlenv outside of it"};
  }
  if (text.find(errno_text(ENOSYS)) != std::string::npos) {
    return Refusal{"this kernel is too old, or not Linux's own",
                   "use a machine with Linux 5.12 or newer"};
  }
  if (in_container(where) || system_calls_are_filtered(where)) {
    return Refusal{
        "this container forbids namespaces or mounts",
        "run the container as root, or with `--security-opt seccomp=unconfined --security-opt "
        "apparmor=unconfined --security-opt systempaths=unconfined`"};
  }
  return std::nullopt;
}

}  // namespace

Surroundings Surroundings::of_process() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  const bool in_kubernetes = ::getenv("KUBERNETES_SERVICE_HOST") != nullptr;
  return {.root = "/", .is_root = ::geteuid() == 0, .in_kubernetes = in_kubernetes};
}

Error late_set_up() {
  return failure("sandbox-failed", "the sandbox was not set up within {} minutes",
                 kLongestSetUp.count())
      .because("something that is mounted on this machine does not answer")
      .hint("look for storage that is gone (`mount`, `dmesg`), then run the command again");
}

std::string trouble_in(const Fd& report, std::chrono::milliseconds deadline) {
  constexpr std::size_t kMost = std::size_t{1} << 20U;
  const auto end = std::chrono::steady_clock::now() + deadline;
  std::string text;
  std::array<char, 4096> buffer{};
  while (text.size() < kMost) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd fd{report.get(), POLLIN, 0};
    const int ready = ::poll(&fd, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) throw os_error(errno, "cannot wait for the sandbox");
    if (ready == 0) throw late_set_up();
    const ssize_t count = ::read(report.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw os_error(errno, "cannot read from the sandbox");
    if (count == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

Error explained(Error error, const Surroundings& where) {
  if (error.code() != "sandbox-failed") return error;
  if (const std::optional<Refusal> found = diagnose(error.what(), where)) {
    error.because(found->reason);
    error.hint(found->hint);
  }
  return error;
}

}  // namespace mlenv::sandbox
