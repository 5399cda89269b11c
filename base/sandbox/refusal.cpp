#include "base/sandbox/refusal.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <optional>
#include <string>

#include "base/files.hpp"
#include "base/sandbox/sandbox.hpp"

namespace mlenv::sandbox {
namespace {

std::string setting(const char* path) {
  std::string text = read_file_if_exists(path).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

bool system_calls_are_filtered() {
  return setting("/proc/self/status").find("Seccomp:\t2") != std::string::npos;
}

bool in_container() {
  return ::access("/.dockerenv", F_OK) == 0 || ::access("/run/.containerenv", F_OK) == 0 ||
         ::getenv("KUBERNETES_SERVICE_HOST") != nullptr;  // NOLINT(concurrency-mt-unsafe)
}

std::optional<SandboxRefusal> namespaces_switched_off() {
  if (setting("/proc/sys/user/max_user_namespaces") == "0") {
    return SandboxRefusal{"user namespaces are switched off (`user.max_user_namespaces` is 0)",
                          "as root: `sysctl -w user.max_user_namespaces=15000`"};
  }
  if (setting("/proc/sys/kernel/unprivileged_userns_clone") == "0" && ::geteuid() != 0) {
    return SandboxRefusal{
        "ordinary users may not make user namespaces (`kernel.unprivileged_userns_clone` is 0)",
        "as root: `sysctl -w kernel.unprivileged_userns_clone=1`"};
  }
  if (setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" &&
      ::geteuid() != 0) {
    return SandboxRefusal{
        "AppArmor gives programs without a profile no rights in user namespaces "
        "(`kernel.apparmor_restrict_unprivileged_userns` is 1)",
        "as root: `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or give mlenv a "
        "profile that has `userns,`"};
  }
  return std::nullopt;
}

std::optional<SandboxRefusal> diagnose(const std::string& text) {
  if (std::optional<SandboxRefusal> off = namespaces_switched_off()) return off;
  if (text.find("another supervisor") != std::string::npos) {
    return SandboxRefusal{"this process itself runs in such a sandbox", "run mlenv outside of it"};
  }
  if (text.find(errno_text(ENOSYS)) != std::string::npos) {
    return SandboxRefusal{"this kernel is too old, or not Linux's own",
                          "use a machine with Linux 5.12 or newer"};
  }
  if (in_container() || system_calls_are_filtered()) {
    return SandboxRefusal{
        "this container forbids namespaces or mounts",
        "run the container as root, or with `--security-opt seccomp=unconfined --security-opt "
        "apparmor=unconfined --security-opt systempaths=unconfined`"};
  }
  return std::nullopt;
}

}  // namespace

Error explained(Error error) {
  if (error.code() != "sandbox-failed") return error;
  if (const std::optional<SandboxRefusal> found = diagnose(error.what())) {
    error.because(found->reason);
    error.hint(found->hint);
  }
  return error;
}

}  // namespace mlenv::sandbox
