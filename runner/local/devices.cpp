#include "runner/local/devices.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <algorithm>
#include <cerrno>

#include "base/error.hpp"

namespace mlenv {
namespace {

std::string type_of(mode_t mode) {
  if (S_ISCHR(mode)) return "c";
  if (S_ISBLK(mode)) return "b";
  return S_ISFIFO(mode) ? "p" : "";
}

Error unusable_device(const CdiNode& node, std::string why) {
  return failure("stale-cdi", "the device `{}` cannot be given to the container", node.on_host())
      .because(std::move(why));
}

/// What the edits do not say of it is as on the host.
CdiNode completed(CdiNode node) {
  if (!node.type.empty() && ((node.major && node.minor) || node.type == "p")) return node;
  struct stat info {};
  if (::stat(node.on_host().c_str(), &info) != 0) throw unusable_device(node, errno_text(errno));
  const std::string type = type_of(info.st_mode);
  if (type.empty()) throw unusable_device(node, "it is no device");
  if (node.type.empty()) node.type = type;
  if (!node.major) node.major = major(info.st_rdev);
  if (!node.minor) node.minor = minor(info.st_rdev);
  return node;
}

/// The host's own, for who may make none. It must be the one that is described.
Mount mount_of(const CdiNode& node) {
  struct stat info {};
  if (::stat(node.on_host().c_str(), &info) != 0) {
    throw unusable_device(node, errno_text(errno))
        .hint("only root may make it: run as root, or make it on the host");
  }
  const bool is_same = type_of(info.st_mode) == (node.type == "u" ? "c" : node.type) &&
                       (node.type == "p" ||
                        (node.major == major(info.st_rdev) && node.minor == minor(info.st_rdev)));
  if (!is_same) {
    throw unusable_device(node, "the host's file is another device than the one described");
  }
  return {node.on_host(), node.path, false, {"bind", "rprivate"}};
}

Mount mount_of(const CdiMount& from) {
  Mount mount{from.host_path, from.path, false, from.options};
  const auto has = [&](std::string_view word) {
    return std::find(from.options.begin(), from.options.end(), word) != from.options.end();
  };
  mount.read_only = has("ro") || has("rro");
  if (!has("bind") && !has("rbind")) mount.options.emplace_back("rbind");
  return mount;
}

}  // namespace

void add_devices(const CdiEdits& edits, Bundle& bundle) {
  for (const CdiNode& one : edits.nodes) {
    CdiNode node = completed(one);
    if (bundle.identity != Identity::root) {
      bundle.mounts.push_back(mount_of(node));
      continue;
    }
    if (!node.user && bundle.user.uid != 0) node.user = bundle.user.uid;
    if (!node.group && bundle.user.gid != 0) node.group = bundle.user.gid;
    bundle.nodes.push_back(std::move(node));
  }
  for (const CdiMount& one : edits.mounts) {
    if (one.is_bind()) {
      bundle.mounts.push_back(mount_of(one));
    } else {
      bundle.file_systems.push_back(one);
    }
  }
  bundle.hooks.insert(bundle.hooks.end(), edits.hooks.begin(), edits.hooks.end());
  // Their numbers are the host's.
  if (bundle.identity == Identity::single_id || bundle.identity == Identity::kept_id) return;
  for (const std::uint64_t group : edits.groups) {
    const auto gid = static_cast<std::uint32_t>(group);
    auto& groups = bundle.user.groups;
    if (std::find(groups.begin(), groups.end(), gid) == groups.end()) groups.push_back(gid);
  }
}

}  // namespace mlenv
