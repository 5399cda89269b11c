#include <set>

#include "base/error.hpp"
#include "base/sandbox/sandbox.hpp"
#include "base/text.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv {
namespace {

/// A line of /proc/self/limits: `Max locked memory   8388608   unlimited   bytes`.
std::optional<Limit> limit_at(const std::string& text, std::string_view name, std::size_t column) {
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with(name)) continue;
    const auto words = words_of(line.substr(name.size()));
    if (words.size() <= column) return std::nullopt;
    if (words[column] == "unlimited") return Limit{};
    const auto most = number_of(words[column]);
    return most ? std::optional(Limit{most}) : std::nullopt;
  }
  return std::nullopt;
}

/// A switch of the kernel's: 0 or 1. `without` where the kernel has none of that name, which it
/// says by /proc/sys/kernel being there without it.
Truth kernel_switch(const FactSources& from, const std::string& name, bool without) {
  const std::string path = "/proc/sys/kernel/" + name;
  if (!present(from, path) && present(from, "/proc/sys/kernel/osrelease")) {
    return known(without, path + " is absent: the kernel has no such switch");
  }
  return derived<bool>(file_number(from, path),
                       [](std::uint64_t value) { return std::optional(value != 0); });
}

Text selinux(const FactSources& from) {
  if (const Number enforce = file_number(from, "/sys/fs/selinux/enforce")) {
    return known<std::string>(*enforce != 0 ? "enforcing" : "permissive", enforce.source);
  }
  if (const Text filesystems = file_text(from, "/proc/filesystems");
      filesystems && filesystems->find("selinuxfs") == std::string::npos) {
    return known<std::string>("disabled", filesystems.source);
  }
  return unknown<std::string>("/sys/fs/selinux is absent");
}

Text apparmor_profile(const FactSources& from) {
  const Text enabled = file_text(from, "/sys/module/apparmor/parameters/enabled");
  if (enabled && *enabled != "Y") return known<std::string>("none", enabled.source);
  if (!enabled && present(from, "/sys/module") && !present(from, "/sys/module/apparmor")) {
    return known<std::string>("none", "/sys/module/apparmor is absent");
  }
  const Text own = file_text(from, "/proc/self/attr/apparmor/current");
  return own ? own : file_text(from, "/proc/self/attr/current");
}

Text seccomp(const Text& status) {
  return derived<std::string>(named_value(status, "Seccomp", ':'),
                              [](const std::string& mode) -> std::optional<std::string> {
                                if (mode == "0") return "disabled";
                                if (mode == "1") return "strict";
                                if (mode == "2") return "filter";
                                return std::nullopt;
                              });
}

Texts controllers(const FactSources& from, const Text& version) {
  using Names = std::vector<std::string>;
  if (!version) return unknown<Names>(version.source);
  std::set<std::string> names;
  std::string source = "/proc/self/mountinfo";
  const auto found = cgroup_folders(from, "");
  for (const fs::path& folder : found.value.value_or(CgroupFolders{}).folders) {
    // The innermost has what its parent hands down.
    const Text text = file_text(from, folder / "cgroup.controllers");
    if (!text) continue;
    for (const std::string_view word : words_of(*text)) names.emplace(word);
    source = text.source;
    break;
  }
  if (*version != "v2") {
    const Text groups = file_text(from, "/proc/self/cgroup");
    if (!groups) return unknown<Names>(groups.source);
    source = groups.source;
    for (const std::string_view line : split(*groups, '\n')) {
      const auto parts = split(line, ':');
      if (parts.size() < 3 || parts[1].starts_with("name=")) continue;
      for (const std::string_view name : split(parts[1], ',')) {
        if (!name.empty()) names.emplace(name);
      }
    }
  }
  return known(Names(names.begin(), names.end()), source);
}

Truth sandbox_works(const FactSources& from) {
  if (!from.live()) return unknown<bool>("not recorded");
  try {
    require_sandbox();
    return known(true, "tried");
  } catch (const Error& error) {
    if (error.code() != "sandbox-failed") return unknown<bool>(error.what());
    return known(false, "tried: " + error.frames().back());
  }
}

}  // namespace

LimitFacts probe_limits(const FactSources& from) {
  const Text text = file_text(from, "/proc/self/limits");
  const auto limit = [&](std::string_view name, std::size_t column) {
    return derived<Limit>(text,
                          [&](const std::string& lines) { return limit_at(lines, name, column); });
  };
  LimitFacts facts;
  facts.memlock_soft_bytes = limit("Max locked memory", 0);
  facts.memlock_hard_bytes = limit("Max locked memory", 1);
  facts.open_files_soft = limit("Max open files", 0);
  facts.open_files_hard = limit("Max open files", 1);
  return facts;
}

IsolationFacts probe_isolation(const FactSources& from) {
  IsolationFacts facts;
  const Text status = file_text(from, "/proc/self/status");
  facts.cgroup_version = cgroup_version(mounts(from));
  facts.cgroup_controllers = controllers(from, facts.cgroup_version);
  facts.max_user_namespaces = file_number(from, "/proc/sys/user/max_user_namespaces");
  facts.unprivileged_user_namespaces = kernel_switch(from, "unprivileged_userns_clone", true);
  facts.apparmor_restricts_namespaces =
      kernel_switch(from, "apparmor_restrict_unprivileged_userns", false);
  facts.apparmor_profile = apparmor_profile(from);
  facts.selinux = selinux(from);
  facts.seccomp = seccomp(status);
  facts.no_new_privileges =
      derived<bool>(named_value(status, "NoNewPrivs", ':'),
                    [](const std::string& value) { return std::optional(value != "0"); });
  facts.sandbox = sandbox_works(from);
  return facts;
}

}  // namespace mlenv
