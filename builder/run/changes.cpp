#include "builder/run/changes.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/tree_walk.hpp"
#include "images/tree_paths.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 5> kPassingFolders = {"/proc", "/sys", "/dev", "/tmp",
                                                             "/run"};
constexpr std::array<std::string_view, 3> kPassingFiles = {"/etc/resolv.conf", "/etc/hosts",
                                                           "/etc/hostname"};

/// A folder that its owner may not list is opened up: it is ours, and is thrown away afterwards.
void open_up(const fs::path& folder, const struct stat& status) {
  if ((status.st_mode & S_IRWXU) != S_IRWXU) (void)::chmod(folder.c_str(), 0700);
}

bool same_content(const Change& now, const LayerStack::Found& before) {
  if (now.status.st_size != before.status.st_size) return false;
  const Fd a{::open(now.source.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  const Fd b{::open(before.path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  if (!a || !b) return false;
  constexpr std::size_t kPart = 1U << 16U;
  std::array<char, kPart> left{};
  std::array<char, kPart> right{};
  for (auto rest = static_cast<std::uint64_t>(now.status.st_size); rest > 0;) {
    const std::size_t part = std::min<std::uint64_t>(rest, kPart);
    const ssize_t count = ::read(a.get(), left.data(), part);
    if (count <= 0 || ::read(b.get(), right.data(), static_cast<std::size_t>(count)) != count) {
      return false;
    }
    if (std::memcmp(left.data(), right.data(), static_cast<std::size_t>(count)) != 0) return false;
    rest -= static_cast<std::uint64_t>(count);
  }
  return true;
}

template <typename Map>
bool differs(const Map& before, const Map& now, const std::string& path) {
  const auto a = before.find(path);
  const auto b = now.find(path);
  if ((a == before.end()) != (b == now.end())) return true;
  return a != before.end() && a->second != b->second;
}

}  // namespace

bool is_passing(const std::string& path) {
  const auto holds = [&](std::string_view place) { return is_beneath(path, place); };
  return std::any_of(kPassingFolders.begin(), kPassingFolders.end(), holds) ||
         std::any_of(kPassingFiles.begin(), kPassingFiles.end(), holds);
}

std::map<std::string, Change> ChangeFinder::find() {
  walk();
  add_changed_owners();
  add_parents();
  return std::move(found_);
}

void ChangeFinder::walk() {
  struct stat status {};
  if (::lstat(all_.upper.c_str(), &status) != 0) throw os_error(errno, "cannot read `/`");
  open_up(all_.upper, status);
  // By depth: whether lower layers show nothing in the folder that the walk is in.
  std::vector<bool> hidden{false};
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    const std::string path{entry.path};
    const std::string absolute = "/" + path;
    const bool lent = std::any_of(all_.lent.begin(), all_.lent.end(), [&](const std::string& one) {
      return is_beneath(absolute, one);
    });
    if (lent || is_passing(absolute)) return false;
    check_layer_path(path);
    const Change now{all_.upper / path, entry.status, false};
    const auto depth = static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
    hidden.resize(depth + 1);
    if (!S_ISDIR(now.status.st_mode)) {
      meet(path, now, hidden[depth]);
      return false;
    }
    hidden.push_back(meet_folder(path, now, hidden[depth]));
    open_up(now.source, now.status);
    return true;
  };
  walk_tree(all_.upper, walk);
}

void ChangeFinder::meet(const std::string& path, const Change& now, bool hidden) {
  seen_.insert(path);
  if (is_whiteout(now.status)) {
    if (!hidden && all_.below.find(path)) found_.emplace(path, Change{});
    return;
  }
  check_no_whiteout(path);
  if (S_ISSOCK(now.status.st_mode)) return;
  const auto before = hidden ? std::nullopt : all_.below.find(path);
  if (!before || !is_same(path, now, *before)) found_.emplace(path, now);
}

bool ChangeFinder::meet_folder(const std::string& path, const Change& now, bool hidden) {
  seen_.insert(path);
  check_no_whiteout(path);
  const auto before = hidden ? std::nullopt : all_.below.find(path);
  const bool on_folder = before && S_ISDIR(before->status.st_mode);
  const bool opaque = has_opaque_mark(now.source);
  if (!opaque) folders_.insert(path);
  if (!on_folder || opaque || before->status.st_mode != now.status.st_mode ||
      other_owner("/" + path)) {
    found_.emplace(path, Change{now.source, now.status, on_folder && opaque});
  }
  return hidden || opaque || !on_folder;
}

bool ChangeFinder::is_same(const std::string& path, const Change& now,
                           const LayerStack::Found& before) const {
  // Names that share an inode stay together.
  if (now.status.st_nlink > 1 || now.status.st_mode != before.status.st_mode) return false;
  if (other_owner("/" + path)) return false;
  if (S_ISREG(now.status.st_mode)) return same_content(now, before);
  if (S_ISLNK(now.status.st_mode)) {
    return fs::read_symlink(now.source) == fs::read_symlink(before.path);
  }
  return S_ISFIFO(now.status.st_mode);
}

bool ChangeFinder::other_owner(const std::string& absolute) const {
  return differs(all_.owners_before, all_.owners, absolute) ||
         (all_.capabilities.contains(absolute) &&
          differs(all_.capabilities_before, all_.capabilities, absolute));
}

/// chown(2) is answered without touching the file, so overlayfs does not know of it.
void ChangeFinder::add_changed_owners() {
  std::set<std::string> paths;
  for (const auto& [path, owner] : all_.owners_before) paths.insert(path);
  for (const auto& [path, owner] : all_.owners) paths.insert(path);
  for (const auto& [path, value] : all_.capabilities) paths.insert(path);
  for (const std::string& absolute : paths) {
    const std::string path = absolute.substr(1);
    const bool lent = std::find(all_.lent.begin(), all_.lent.end(), absolute) != all_.lent.end();
    if (lent || path.empty() || is_passing(absolute) || seen_.contains(path)) continue;
    if (!other_owner(absolute) || is_gone(path)) continue;
    if (const auto before = all_.below.find(path)) {
      found_.emplace(path, Change{before->path, before->status, false});
    }
  }
}

/// Of a path that is not in the upper folder itself.
bool ChangeFinder::is_gone(const std::string& path) const {
  for (std::size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (seen_.contains(folder) && !folders_.contains(folder)) return true;
  }
  return false;
}

void ChangeFinder::add_parents() {
  std::map<std::string, Change> parents;
  for (const auto& [path, change] : found_) {
    for (std::size_t slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      const std::string folder = path.substr(0, slash);
      if (found_.contains(folder) || parents.contains(folder)) continue;
      Change parent{all_.upper / folder, {}, false};
      if (::lstat(parent.source.c_str(), &parent.status) != 0) {
        const auto before = all_.below.find(folder);
        if (!before) throw failure("bad-layer", "`/{}` has no folder", path);
        parent = {before->path, before->status, false};
      }
      parents.emplace(folder, parent);
    }
  }
  found_.merge(parents);
}

}  // namespace mlenv
