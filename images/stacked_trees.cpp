#include "images/stacked_trees.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <cerrno>
#include <deque>
#include <set>

#include "base/beneath.hpp"
#include "base/descriptor_path.hpp"
#include "base/error.hpp"
#include "base/tree_walk.hpp"
#include "images/tree_paths.hpp"

namespace mlenv {
namespace {

constexpr int kMostLinks = 40;  // path_resolution(7)

bool is_opaque(const fs::path& folder) {
  return ::lgetxattr(folder.c_str(), "user.overlay.opaque", nullptr, 0) > 0 ||
         ::lgetxattr(folder.c_str(), "trusted.overlay.opaque", nullptr, 0) > 0;
}

/// What is open there, whatever has its name by now.
void push_parts(std::string_view path, std::deque<std::string>& parts) {
  std::vector<std::string> found;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    if (slash != 0) found.emplace_back(path.substr(0, slash));
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
  }
  parts.insert(parts.begin(), found.begin(), found.end());
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string{} : path.substr(0, slash);
}

std::string link_target(int fd) {
  std::optional<std::string> target = link_at(fd, "");
  if (!target) throw os_error(errno, "cannot read a link of an image");
  return *std::move(target);
}

/// false: the file system cannot, and an empty file is there; or nothing, and why is told later.
bool clone_file(const fs::path& from, const fs::path& to) {
  const Fd source{::open(from.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status {};
  if (!source || ::fstat(source.get(), &status) != 0) return false;
  constexpr mode_t kPermissions = 0777;
  const Fd target{::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  return target && ::ioctl(target.get(), FICLONE, source.get()) == 0 &&
         ::fchmod(target.get(), status.st_mode & kPermissions) == 0;
}

/// A copy also where no link can be made: of another's file (fs.protected_hardlinks), or too many
/// links.
void add_file(const fs::path& from, const fs::path& to, Filled how) {
  if (how == Filled::with_links) {
    if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), 0) == 0) return;
  } else if (clone_file(from, to)) {
    return;
  }
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  // What only others may read is of no use to us.
  if (error && error != std::errc::permission_denied) {
    throw os_error(error.value(), "cannot copy `{}`", from.string());
  }
}

void copy_link(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::copy_symlink(from, to, error);
  if (error) throw os_error(error.value(), "cannot copy the link `{}`", from.string());
}

void add_folder(const fs::path& from, const fs::path& to) {
  if (is_opaque(from)) remove_tree(to);
  if (fs::is_directory(fs::symlink_status(to))) return;
  remove_tree(to);
  if (::mkdir(to.c_str(), 0755) != 0) throw os_error(errno, "cannot make `{}`", to.string());
}

void add_entry(const fs::path& from, const fs::path& to, mode_t mode, Filled how) {
  if (S_ISDIR(mode)) return add_folder(from, to);
  remove_tree(to);
  if (S_ISLNK(mode)) {
    copy_link(from, to);
  } else if (S_ISREG(mode)) {
    add_file(from, to, how);
  }
}

void add_layer(const fs::path& layer, const fs::path& root, Filled how) {
  add_folder(layer, root);
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    add_entry(layer / entry.path, root / entry.path, entry.status.st_mode, how);
    return true;
  };
  // What only others may read is of no use to us.
  walk.unreadable = [&](std::string_view path, int error) {
    if (error != EACCES) throw os_error(error, "cannot read `{}`", short_path(layer, path));
  };
  walk.sorted = true;
  walk_tree(layer, walk);
}

}  // namespace

StackedTrees::StackedTrees(const std::vector<fs::path>& layers) : paths_(layers) {
  for (const fs::path& layer : layers) layers_.push_back(open_file(layer, O_PATH | O_DIRECTORY));
}

/// Without following any link: what a hidden layer has in the place of a folder may be one.
StackedTrees::Entry StackedTrees::open(std::size_t layer, const std::string& path) const {
  Entry entry{};
  entry.fd = open_beneath(layers_[layer].get(), path.empty() ? "." : path, O_PATH | O_NOFOLLOW,
                          Links::none);
  if (!entry.fd) return entry;
  if (::fstat(entry.fd.get(), &entry.status) != 0) throw os_error(errno, "cannot read `{}`", path);
  return entry;
}

/// Whether the layer ends the search for `path`, which it does not have itself.
bool StackedTrees::hides_below(std::size_t layer, const std::string& path) const {
  for (std::string at = parent_of(path);; at = parent_of(at)) {
    const Entry entry = open(layer, at);
    if (entry.fd && (!S_ISDIR(entry.status.st_mode) || has_opaque_mark(descriptor_path(entry.fd))))
      return true;
    if (at.empty()) return false;
  }
}

std::optional<StackedTrees::Entry> StackedTrees::top_entry(const std::string& path) const {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    Entry entry = open(i, path);
    if (entry.fd) {
      if (is_whiteout(entry.status)) return std::nullopt;
      return entry;
    }
    if (hides_below(i, path)) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<StackedTrees::Entry> StackedTrees::follow(std::string_view path,
                                                        std::string& real) const {
  std::deque<std::string> parts;
  push_parts(path, parts);
  real.clear();
  std::optional<Entry> entry = top_entry(real);
  for (int links = 0; !parts.empty();) {
    const std::string part = std::move(parts.front());
    parts.pop_front();
    if (part == ".") continue;
    if (part == "..") {
      real = parent_of(real);
      entry = top_entry(real);
      continue;
    }
    if (!entry || !S_ISDIR(entry->status.st_mode)) return std::nullopt;
    const std::string next = real.empty() ? part : real + '/' + part;
    entry = top_entry(next);
    if (!entry) return std::nullopt;
    if (!S_ISLNK(entry->status.st_mode)) {
      real = next;
      continue;
    }
    if (++links > kMostLinks) return std::nullopt;
    const std::string target = link_target(entry->fd.get());
    if (target.starts_with('/')) real.clear();
    push_parts(target, parts);
    entry = top_entry(real);
  }
  return entry;
}

std::optional<std::string> StackedTrees::resolve(std::string_view path) const {
  std::string real;
  if (!follow(path, real)) return std::nullopt;
  return real;
}

std::optional<std::string> StackedTrees::read(std::string_view path, std::uint64_t limit) const {
  std::string real;
  const std::optional<Entry> entry = follow(path, real);
  if (!entry || !S_ISREG(entry->status.st_mode)) return std::nullopt;
  const Fd file = open_file(descriptor_path(entry->fd), O_RDONLY);
  FdSource source{file.get()};
  return read_all(source, limit);
}

bool StackedTrees::is_program(std::string_view path) const {
  std::string real;
  const std::optional<Entry> entry = follow(path, real);
  return entry && S_ISREG(entry->status.st_mode) && (entry->status.st_mode & 0111U) != 0;
}

std::vector<std::string> StackedTrees::list(std::string_view path) const {
  const std::optional<std::string> folder = resolve(path);
  std::set<std::string> names;
  if (!folder) return {};
  const std::string prefix = folder->empty() ? "" : *folder + '/';
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Entry entry = open(i, *folder);
    if (!entry.fd || !S_ISDIR(entry.status.st_mode)) continue;
    for (const fs::path& one : list_folder(descriptor_path(entry.fd))) {
      names.insert(one.filename().string());
    }
  }
  std::vector<std::string> there;
  for (const std::string& name : names) {
    if (top_entry(prefix + name)) there.push_back(name);
  }
  return there;
}

void StackedTrees::link_into(const fs::path& root, Filled how) const {
  for (const fs::path& layer : paths_) add_layer(layer, root, how);
}

}  // namespace mlenv
