#include "builder/debian/tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <fmt/format.h>

#include "base/descriptor_path.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "builder/debian/beneath.hpp"
#include "builder/debian/diversions.hpp"

namespace mlenv::debian {
namespace {

constexpr int kLinkDepth = 40;  // as the kernel

/// Folders of / that are links into /usr where it is merged.
std::vector<std::string> merged_folders(const std::string& architecture) {
  std::vector<std::string> names{"bin", "lib", "sbin"};
  if (architecture == "amd64") names.emplace_back("lib64");
  return names;
}

bool replaces(const Package& package, const std::string& other) {
  for (const auto& group : parse_relation(package.field("replaces"))) {
    if (std::ranges::find(group, other) != group.end()) return true;
  }
  return false;
}

std::pair<std::string, std::string> split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace

Tree::Tree(fs::path root, const std::string& architecture)
    : root_(std::move(root)), fd_(open_file(root_, O_PATH | O_DIRECTORY)) {
  for (const std::string& name : merged_folders(architecture)) {
    make_folders(root_ / "usr" / name);
    if (::symlinkat(("usr/" + name).c_str(), fd_.get(), name.c_str()) != 0) {
      throw os_error(errno, "cannot make `/{}`", name);
    }
    folder_modes_.emplace("usr/" + name, 0755);
  }
  folder_modes_.emplace("usr", 0755);
}

std::string Tree::resolved_folder(const std::string& folder, int depth) {
  if (folder.empty()) return folder;
  if (const auto known = folders_.find(folder); known != folders_.end()) return known->second;
  if (depth > kLinkDepth) throw failure("bad-deb", "too many links on the way to `/{}`", folder);
  const auto [parent, name] = split_path(folder);
  const std::string above = resolved_folder(parent, depth);
  std::string path = above.empty() ? name : above + "/" + name;
  std::string target(4096, '\0');
  const ssize_t length = ::readlinkat(fd_.get(), path.c_str(), target.data(), target.size());
  if (length > 0) {
    target.resize(static_cast<std::size_t>(length));
    const fs::path whole{target.front() == '/' ? target : "/" + above + "/" + target};
    std::string plain = whole.lexically_normal().relative_path().string();
    if (plain.ends_with('/')) plain.pop_back();
    path = resolved_folder(plain == "." ? "" : plain, depth + 1);
  }
  folders_.emplace(folder, path);
  return path;
}

std::string Tree::canonical(const std::string& path) {
  const auto [parent, name] = split_path(path);
  if (("/" + path + "/").find("/../") != std::string::npos || name.empty()) {
    throw failure("base-failed", "`/{}` is no place for a package's file", path);
  }
  const std::string above = resolved_folder(parent, 0);
  return above.empty() ? name : above + "/" + name;
}

bool Tree::present(const std::string& path) const {
  struct stat status {};
  return ::fstatat(fd_.get(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

void Tree::note_owner(const TarEntry& entry, const std::string& path) {
  const Owner owner{static_cast<std::uint32_t>(entry.uid), static_cast<std::uint32_t>(entry.gid)};
  if (owner == Owner{}) {
    owners_.erase("/" + path);
  } else {
    owners_["/" + path] = owner;
  }
}

/// Where `path` goes: through no link, whatever a script has made of its folders since they were
/// looked at.
bool Tree::move_in(int from, const std::string& entry, const std::string& path) const {
  const Fd parent = open_real_parent(fd_.get(), path);
  return parent &&
         ::renameat(from, entry.c_str(), parent.get(), std::string(last_part(path)).c_str()) == 0;
}

void Tree::put_folder(const TarEntry& entry, const std::string& path) {
  const Fd parent = open_real_parent(fd_.get(), path);
  if (!parent || ::mkdirat(parent.get(), std::string(last_part(path)).c_str(), 0755) != 0) {
    struct stat status {};
    const bool folder = errno == EEXIST &&
                        ::fstatat(fd_.get(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                        (S_ISDIR(status.st_mode) || S_ISLNK(status.st_mode));
    if (!folder) throw os_error(errno, "cannot make the folder `/{}`", path);
    return;
  }
  folder_modes_.emplace(path, entry.mode & 07777U);
  note_owner(entry, path);
}

/// Whether `path` becomes this package's. A path that somebody holds without a word about it in
/// `Replaces` may be a diversion, which is only known once preinst scripts have run.
bool Tree::may_take(const std::vector<Package>& packages, std::size_t index, const TarEntry& entry,
                    const std::string& path) {
  const auto [holder, free] = holders_.emplace(path, index);
  if (free || holder->second == index) {
    struct stat status {};
    // A real folder stays where a package has a link.
    return ::fstatat(fd_.get(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
           !S_ISDIR(status.st_mode);
  }
  const std::size_t other = holder->second;
  if (replaces(packages[index], packages[other].name)) {
    for (const TarEntry& theirs : packages[other].entries) {
      if (canonical(theirs.path) == path) lost_[other].insert(theirs.path);
    }
    holder->second = index;
    return true;
  }
  if (replaces(packages[other], packages[index].name)) {
    lost_[index].insert(entry.path);
  } else {
    contested_[path].insert({other, index});
  }
  return false;
}

void Tree::merge(const std::vector<Package>& packages, std::size_t index, const fs::path& staging) {
  const Fd from = open_file(staging, O_PATH | O_DIRECTORY);
  for (const TarEntry& entry : packages[index].entries) {
    if (entry.path == ".") continue;
    const std::string path = canonical(entry.path);
    if (entry.type == TarEntry::Type::folder) {
      put_folder(entry, path);
      continue;
    }
    if (!may_take(packages, index, entry, path)) continue;
    if (!move_in(from.get(), entry.path, path)) {
      throw os_error(errno, "cannot put `/{}` of `{}` in place", path, packages[index].name);
    }
    note_owner(entry, path);
  }
}

void Tree::finish_folders() {
  for (const auto& [path, mode] : folder_modes_) {
    const Fd folder = open_real(fd_.get(), path, O_DIRECTORY);
    // chmod(2) takes no O_PATH descriptor; its name in /proc leads to what it stands for.
    const std::string name = descriptor_path(folder);
    if (!folder || ::chmod(name.c_str(), mode) != 0) {
      throw os_error(errno, "cannot set the mode of `/{}`", path);
    }
  }
  folder_modes_.clear();
}

/// Path in the archive → where it has to go, for what is not there (or not certainly the right
/// one).
std::map<std::string, std::string> Tree::moves_of(std::size_t index,
                                                  const std::vector<Package>& packages, bool last) {
  const Package& package = packages[index];
  const Diversions diversions = read_diversions(root_);
  std::map<std::string, std::string> moves;
  for (const TarEntry& entry : package.entries) {
    if (entry.path == "." || lost_[index].contains(entry.path)) continue;
    const std::string path = canonical(entry.path);
    std::string place = path;
    if (const auto found = diversions.find("/" + path);
        found != diversions.end() && found->second.package != package.name) {
      place = canonical(fs::path(found->second.target).relative_path().string());
    }
    const auto contested = contested_.find(path);
    if (contested != contested_.end()) {
      if (diversions.contains("/" + path)) {
        moves.emplace(entry.path, place);
      } else if (last) {
        throw failure("base-failed", "`/{}` is in `{}` and in `{}`", path,
                      packages[*contested->second.begin()].name,
                      packages[*contested->second.rbegin()].name)
            .hint("ask for only one of the two packages");
      }
    } else if (!present(place)) {
      moves.emplace(entry.path, place);
    }
  }
  return moves;
}

void Tree::settle(const std::vector<Package>& packages, const std::vector<fs::path>& files,
                  const fs::path& scratch, bool last) {
  folders_.clear();
  for (std::size_t index = 0; index < packages.size(); ++index) {
    const std::map<std::string, std::string> moves = moves_of(index, packages, last);
    if (moves.empty()) continue;
    std::set<std::string> only;
    for (const TarEntry& entry : packages[index].entries) {
      if (!moves.contains(entry.path)) continue;
      only.insert(entry.path);
      if (entry.type == TarEntry::Type::hardlink) only.insert(entry.link);
    }
    const TemporaryFolder staging{scratch};
    (void)unpack_package(files[index], staging.path(), &only);
    const Fd from = open_file(staging.path(), O_PATH | O_DIRECTORY);
    for (const TarEntry& entry : packages[index].entries) {
      const auto move = moves.find(entry.path);
      if (move == moves.end()) continue;
      if (entry.type == TarEntry::Type::folder) {
        put_folder(entry, move->second);
      } else if (!move_in(from.get(), entry.path, move->second)) {
        throw os_error(errno, "cannot put `/{}` back in place", move->second);
      } else {
        note_owner(entry, move->second);
      }
    }
  }
  finish_folders();
}

void write_with_mode(const fs::path& path, std::string_view text, mode_t mode) {
  write_file(path, text, false);
  if (::chmod(path.c_str(), mode) != 0) throw os_error(errno, "cannot write `{}`", path.string());
}

}  // namespace mlenv::debian
