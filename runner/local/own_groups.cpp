#include "runner/local/own_groups.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <cerrno>
#include <compare>

#include "base/error.hpp"
#include "base/text.hpp"
#include "recipes/resolve/versions.hpp"

namespace mlenv {
namespace {

/// Our group in a hierarchy of version 1, by whichever of its controllers tells.
std::optional<fs::path> own_folder(const FactSources& from, const MountLine& hierarchy) {
  for (const std::string_view word : split(hierarchy.super_options, ',')) {
    if (word == "rw" || word == "ro") continue;
    const Fact<CgroupFolders> found = cgroup_folders(from, word);
    if (!found || found->unified || found->folders.empty()) continue;
    if (found->folders.back() == fs::path(hierarchy.point)) return found->folders.front();
  }
  return std::nullopt;
}

Error no_view(std::string_view what) {
  const int error = errno;
  return failure("no-namespace", "cannot show crun its control groups")
      .because(fmt::format("{}: {}", what, errno_text(error)))
      .hint("`--runtime runc` needs no such view");
}

}  // namespace

std::vector<OwnGroup> own_groups(const FactSources& from) {
  std::vector<OwnGroup> groups;
  const auto mounted = mounts(from);
  if (!mounted) return groups;
  for (const MountLine& line : *mounted) {
    if (line.type != "cgroup") continue;
    const auto folder = own_folder(from, line);
    if (folder && *folder != fs::path(line.point)) groups.push_back({line.point, *folder});
  }
  return groups;
}

void show_own_groups(bool root) {
  const FactSources here = host_sources("/", "/tmp");
  const auto mounted = mounts(here);
  const Text version = cgroup_version(mounted);
  if (!version || (*version != "v1" && *version != "hybrid")) return;
  const std::vector<OwnGroup> groups = root ? own_groups(here) : std::vector<OwnGroup>{};
  if (!groups.empty() && ::unshare(CLONE_NEWCGROUP) != 0) throw no_view("unshare");
  for (const OwnGroup& group : groups) {
    if (::mount(group.folder.c_str(), group.point.c_str(), nullptr, MS_BIND, nullptr) != 0) {
      throw no_view(group.point.string());
    }
  }
  for (const MountLine& line : *mounted) {
    if (line.type != "cgroup2") continue;
    // Writable: crun makes its folder in it as in all others.
    if (::mount("tmpfs", line.point.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                "size=64k,mode=0755") != 0) {
      throw no_view(line.point);
    }
  }
}

std::vector<fs::path> all_own_groups(const FactSources& from) {
  std::vector<fs::path> folders;
  const auto mounted = mounts(from);
  if (!mounted) return folders;
  for (const MountLine& line : *mounted) {
    if (line.type == "cgroup") {
      if (auto folder = own_folder(from, line)) folders.push_back(*std::move(folder));
    } else if (line.type == "cgroup2") {
      const Fact<CgroupFolders> found = cgroup_folders(from, "");
      if (found && found->unified && !found->folders.empty()) {
        folders.push_back(found->folders.front());
      }
    }
  }
  return folders;
}

std::string own_unified_path(const FactSources& from) {
  const Text version = cgroup_version(mounts(from));
  if (!version || *version != "v2") return "";
  const Fact<CgroupFolders> found = cgroup_folders(from, "");
  if (!found || found->folders.empty()) return "";
  const fs::path inner = found->folders.front().lexically_relative(found->folders.back());
  return inner == "." ? "/" : "/" + inner.string() + "/";
}

std::string quick_runtime(const FactSources& from, bool root, const JobLimits& limits) {
  if (root) {
    const Text version = cgroup_version(mounts(from));
    const bool first = version && (*version == "v1" || *version == "hybrid");
    if (!first || limits != JobLimits{}) return "";
  }
  const std::optional<fs::path> crun = from.find("crun");
  if (!crun) return "";
  const Text version = engine_version(from, crun->string(), "--version");
  return version && std::is_gteq(compare_versions(*version, "1.8")) ? crun->string() : "";
}

}  // namespace mlenv
