// The limits of this process's control groups (cgroups(7); the kernel's cgroup-v2.rst and cgroup-v1
// documents). Where v1 and v2 are both mounted, /proc/self/cgroup says which has a controller.
#include <algorithm>

#include <fmt/core.h>

#include "base/text.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv {
namespace {

/// This process's place in a hierarchy, as /proc/self/cgroup has it.
struct GroupPlace {
  bool unified = false;  ///< v2's
  std::string path;
};

bool is_listed(std::string_view list, std::string_view word) {
  const auto words = split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// A v1 hierarchy that has the controller, else v2's; nullopt: no hierarchy has it.
std::optional<GroupPlace> group_place(std::string_view groups, std::string_view controller) {
  std::optional<GroupPlace> unified;
  for (const std::string_view line : split(groups, '\n')) {
    const std::size_t first = line.find(':');  // ID:CONTROLLERS:PATH
    const std::size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (!controller.empty() && is_listed(controllers, controller)) return GroupPlace{false, path};
    if (controllers.empty()) unified = GroupPlace{true, path};
  }
  return unified;
}

const MountLine* cgroup_mount(const std::vector<MountLine>& lines, const GroupPlace& place,
                              std::string_view controller) {
  const auto found = std::find_if(lines.begin(), lines.end(), [&](const MountLine& one) {
    return place.unified ? one.type == "cgroup2"
                         : one.type == "cgroup" && is_listed(one.super_options, controller);
  });
  return found == lines.end() ? nullptr : &*found;
}

/// `path` as it lies below a mount whose first folder is `root` of the hierarchy; nullopt: outside.
std::optional<fs::path> below_root(const fs::path& path, const fs::path& root) {
  const fs::path inner = path.lexically_relative(root);
  if (inner.empty() || *inner.begin() == "..") return std::nullopt;
  for (const fs::path& part : path) {
    if (part == "..") return std::nullopt;  // above the cgroup namespace
  }
  return inner == "." ? fs::path{} : inner;
}

}  // namespace

Text cgroup_version(const Fact<std::vector<MountLine>>& mounted) {
  return derived<std::string>(mounted, [](const std::vector<MountLine>& lines) {
    const auto has = [&](std::string_view type) {
      return std::any_of(lines.begin(), lines.end(),
                         [&](const MountLine& one) { return one.type == type; });
    };
    const bool old = has("cgroup");
    const bool unified = has("cgroup2");
    return std::optional<std::string>(old ? (unified ? "hybrid" : "v1")
                                          : (unified ? "v2" : "none"));
  });
}

CgroupView cgroup_view(const FactSources& from, std::string_view process) {
  return {file_text(from, fmt::format("/proc/{}/cgroup", process)), mounts(from)};
}

Fact<CgroupFolders> cgroup_folders(const FactSources& from, std::string_view controller,
                                   std::string_view process) {
  return cgroup_folders(from, cgroup_view(from, process), controller);
}

Fact<CgroupFolders> cgroup_folders(const FactSources& from, const CgroupView& view,
                                   std::string_view controller) {
  const std::string what =
      controller.empty() ? "cgroup" : fmt::format("cgroup of `{}`", controller);
  const auto& [groups, mounted] = view;
  if (!groups) return unknown<CgroupFolders>(groups.source);
  const std::optional<GroupPlace> place = group_place(*groups, controller);
  if (!place) return known(CgroupFolders{}, fmt::format("{}: no {}", groups.source, what));
  if (!mounted) return unknown<CgroupFolders>(mounted.source);
  const MountLine* const mount = cgroup_mount(*mounted, *place, controller);
  if (mount == nullptr) {
    return unknown<CgroupFolders>(fmt::format("the {} is mounted nowhere here", what));
  }
  const auto inner = below_root(place->path, mount->root);
  const fs::path top = mount->point;
  if (!inner || !present(from, top / *inner)) {
    return unknown<CgroupFolders>(fmt::format("this process's {}, `{}`, cannot be seen below {}",
                                              what, place->path, mount->point));
  }
  CgroupFolders found{place->unified, {}};
  for (fs::path part = *inner; !part.empty(); part = part.parent_path()) {
    found.folders.push_back(top / part);
  }
  found.folders.push_back(top);
  return known(std::move(found), mounted.source);
}

Fact<Limit> least_limit(const FactSources& from, std::string_view controller,
                        const ReadLimit& read) {
  const Fact<CgroupFolders> found = cgroup_folders(from, controller);
  if (!found) return unknown<Limit>(found.source);
  Fact<Limit> least = known(
      Limit{}, found->folders.empty() ? found.source : "no cgroup that can be seen limits it");
  for (const fs::path& folder : found->folders) {
    Fact<Limit> limit = read(folder, found->unified);
    if (!limit) return limit;
    if (limit->most && (!least->most || *limit->most < *least->most)) least = std::move(limit);
  }
  return least;
}

}  // namespace mlenv
