#include "runner/local/own_groups.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <algorithm>
#include <cerrno>
#include <compare>

#include "base/error.hpp"
#include "base/text.hpp"
#include "recipes/resolve/versions.hpp"

namespace mlenv {
namespace {

/// Our group in a hierarchy, by whichever of its controllers tells.
std::optional<fs::path> own_folder(const FactSources& from, const CgroupView& view,
                                   const MountLine& hierarchy) {
  const bool unified = hierarchy.type == "cgroup2";
  const auto names =
      unified ? std::vector<std::string_view>{""} : split(hierarchy.super_options, ',');
  for (const std::string_view name : names) {
    if (name == "rw" || name == "ro") continue;
    const Fact<CgroupFolders> found = cgroup_folders(from, view, name);
    if (!found || found->unified != unified || found->folders.empty()) continue;
    if (found->folders.back() == fs::path(hierarchy.point)) return found->folders.front();
  }
  return std::nullopt;
}

/// In all hierarchies of such a type, each once: what is mounted twice at a place shows as one.
std::vector<OwnGroup> own_groups_of(const FactSources& from, const CgroupView& view,
                                    std::string_view type) {
  std::vector<OwnGroup> groups;
  if (!view.mounted) return groups;
  for (const MountLine& line : *view.mounted) {
    const bool is_known = std::any_of(groups.begin(), groups.end(),
                                      [&](const OwnGroup& one) { return one.point == line.point; });
    if (line.type != type || is_known) continue;
    if (auto folder = own_folder(from, view, line)) {
      groups.push_back({line.point, *std::move(folder)});
    }
  }
  return groups;
}

std::vector<OwnGroup> not_the_first(std::vector<OwnGroup> groups) {
  std::erase_if(groups, [](const OwnGroup& one) { return one.folder == one.point; });
  return groups;
}

bool has_version_1(const Text& version) {
  return version && (*version == "v1" || *version == "hybrid");
}

Error no_view(std::string_view what) {
  const int error = errno;
  return failure("no-namespace", "cannot show crun its control groups")
      .because(fmt::format("{}: {}", what, errno_text(error)))
      .hint("`--runtime runc` needs no such view");
}

}  // namespace

std::vector<OwnGroup> own_groups(const FactSources& from) {
  return not_the_first(own_groups_of(from, cgroup_view(from), "cgroup"));
}

void show_own_groups(bool root) {
  const FactSources here = host_sources("/", "/tmp");
  const CgroupView view = cgroup_view(here);
  if (!has_version_1(cgroup_version(view.mounted))) return;
  std::vector<OwnGroup> groups;
  if (root) groups = not_the_first(own_groups_of(here, view, "cgroup"));
  if (!groups.empty() && ::unshare(CLONE_NEWCGROUP) != 0) throw no_view("unshare");
  for (const OwnGroup& group : groups) {
    if (::mount(group.folder.c_str(), group.point.c_str(), nullptr, MS_BIND, nullptr) != 0) {
      throw no_view(group.point.string());
    }
  }
  for (const MountLine& line : *view.mounted) {
    if (line.type != "cgroup2") continue;
    // Writable: crun makes its folder in it as in all others.
    if (::mount("tmpfs", line.point.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                "size=64k,mode=0755") != 0) {
      throw no_view(line.point);
    }
  }
}

std::vector<fs::path> all_own_groups(const FactSources& from) {
  const CgroupView view = cgroup_view(from);
  std::vector<fs::path> folders;
  for (const char* const type : {"cgroup", "cgroup2"}) {
    for (OwnGroup& one : own_groups_of(from, view, type)) folders.push_back(std::move(one.folder));
  }
  return folders;
}

std::string own_unified_path(const FactSources& from) {
  const CgroupView view = cgroup_view(from);
  const Text version = cgroup_version(view.mounted);
  if (!version || *version != "v2") return "";
  const Fact<CgroupFolders> found = cgroup_folders(from, view, "");
  if (!found || found->folders.empty()) return "";
  const fs::path inner = found->folders.front().lexically_relative(found->folders.back());
  return inner == "." ? "/" : "/" + inner.string() + "/";
}

std::string quick_runtime(const FactSources& from, bool root, const JobLimits& limits) {
  if (root && (!has_version_1(cgroup_version(mounts(from))) || limits != JobLimits{})) return "";
  const std::optional<fs::path> crun = from.find("crun");
  if (!crun) return "";
  const Text version = engine_version(from, crun->string(), "--version");
  return version && std::is_gteq(compare_versions(*version, "1.8")) ? crun->string() : "";
}

}  // namespace mlenv
