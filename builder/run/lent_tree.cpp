#include "builder/run/lent_tree.hpp"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/tree_walk.hpp"
#include "images/tree_paths.hpp"

namespace mlenv {
namespace {

/// What `lend` looks at, in the image: which distribution it is, and which settings it has of its
/// own.
constexpr std::array<std::string_view, 8> kSettings = {
    "etc/os-release", "usr/lib/os-release",        "etc/apt/sources.list",    "etc/pip.conf",
    "etc/uv/uv.toml", "root/.config/pip/pip.conf", "root/.config/uv/uv.toml", "usr/bin/apt-get"};
constexpr std::string_view kSourceFolder = "etc/apt/sources.list.d";

void copy_content(const fs::path& from, const fs::path& to, mode_t mode) {
  const Fd in = open_file(from, O_RDONLY | O_NOFOLLOW);
  const Fd out = open_file(to, O_WRONLY | O_CREAT | O_EXCL, 0600);
  FdSource source{in.get()};
  FdSink sink{out.get()};
  copy(source, sink);
  if (::fchmod(out.get(), mode & 07777U) != 0)
    throw os_error(errno, "cannot write `{}`", to.string());
}

}  // namespace

LentTree::LentTree(fs::path folder, LayerStack& below) : folder_(std::move(folder)), below_(below) {
  make_folders(folder_);
}

void LentTree::copy_into(const fs::path& root, const std::string& path,
                         const LayerStack::Found& found) {
  const fs::path to = root / path;
  make_folders(to.parent_path());
  if (S_ISDIR(found.status.st_mode)) {
    make_folders(to);
  } else if (S_ISREG(found.status.st_mode)) {
    copy_content(found.path, to, found.status.st_mode);
  } else if (S_ISLNK(found.status.st_mode)) {
    fs::copy_symlink(found.path, to);
  } else if (S_ISFIFO(found.status.st_mode)) {
    if (::mkfifo(to.c_str(), 0600) != 0 || ::chmod(to.c_str(), found.status.st_mode & 07777U) != 0)
      throw os_error(errno, "cannot make `{}`", to.string());
  }
}

bool LentTree::is_whole(const std::string& path) const {
  return std::any_of(whole_.begin(), whole_.end(),
                     [&](const std::string& one) { return one.empty() || is_beneath(path, one); });
}

void LentTree::disown(const std::string& path) {
  if (is_whole(path)) return;
  if (const auto found = below_.find(path)) copy_into(folder_, path, *found);
}

void LentTree::disown_whole(const std::string& path) {
  const auto found = below_.find(path);
  if (is_whole(path) || !found || !S_ISDIR(found->status.st_mode)) return;
  copy_whole(path);
  const fs::path folder = folder_ / path;
  if (::setxattr(folder.c_str(), kOpaqueMarks.front(), "y", 1, 0) != 0)
    throw os_error(errno, "cannot mark `{}`", folder.string());
  whole_.push_back(path);
}

void LentTree::disown_others(const ImageOwners& owners) {
  if (::geteuid() != 0) return;
  for (const std::string& path : owners.shut_folders()) disown_whole(path.substr(1));
  for (const auto& [path, owner] : owners.owners()) disown(path.substr(1));
  for (const auto& [path, value] : owners.capabilities()) {
    if (!owners.owners().contains(path)) disown(path.substr(1));
  }
}

void LentTree::copy_whole(const std::string& path) {
  const auto found = below_.find(path);
  if (!found) return;
  copy_into(folder_, path, *found);
  if (!S_ISDIR(found->status.st_mode)) return;
  for (const std::string& entry : below_.entries(path)) copy_whole(entry);
}

void LentTree::add_folder(const std::string& path) {
  if (!below_.find(path)) make_folders(folder_ / path);
}

void LentTree::offer(const std::string& path, std::string_view text) {
  if (below_.find(path)) return;
  make_folders((folder_ / path).parent_path());
  write_file(folder_ / path, text, false);
  lent_.push_back("/" + path);
}

std::vector<std::string> LentTree::settings_in_sight() {
  std::set<std::string> paths(kSettings.begin(), kSettings.end());
  for (const fs::path& tree : below_.trees()) {
    for (const fs::path& file : list_folder(tree / kSourceFolder)) {
      paths.insert(std::string(kSourceFolder) + "/" + file.filename().string());
    }
  }
  return {paths.begin(), paths.end()};
}

void LentTree::lend(const fs::path& view, const std::function<void(const fs::path&)>& write) {
  std::set<std::string> shown;
  for (const std::string& path : settings_in_sight()) {
    const auto found = below_.find(path);
    if (!found || S_ISDIR(found->status.st_mode)) continue;
    copy_into(view, path, *found);
    shown.insert(path);
  }
  make_folders(view);
  write(view);
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    const std::string path{entry.path};
    if (!S_ISREG(entry.status.st_mode) || shown.contains(path)) return true;
    std::error_code error;
    fs::remove(folder_ / path, error);
    copy_into(folder_, path, {view / path, entry.status, 0});
    lent_.push_back("/" + path);
    return true;
  };
  walk_tree(view, walk);
}

void LentTree::finish() {
  std::vector<fs::path> folders;
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    if (S_ISDIR(entry.status.st_mode)) folders.push_back(folder_ / entry.path);
    return true;
  };
  walk_tree(folder_, walk);
  std::sort(folders.rbegin(), folders.rend());  // the inner ones first
  for (const fs::path& folder : folders) {
    const auto found = below_.find(folder.lexically_relative(folder_).string());
    const mode_t mode = found && S_ISDIR(found->status.st_mode) ? found->status.st_mode : 0755;
    if (::chmod(folder.c_str(), mode & 07777U) != 0) {
      throw os_error(errno, "cannot make `{}`", folder.string());
    }
  }
}

Overlay LentTree::stacked(const fs::path& scratch) const {
  Overlay overlay{below_.trees(), scratch / "overlay", true};
  overlay.lowers.push_back(folder_);
  make_folders(overlay.folder);
  return overlay;
}

}  // namespace mlenv
