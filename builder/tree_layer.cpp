#include "builder/tree_layer.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <algorithm>
#include <cerrno>
#include <map>

#include "base/error.hpp"
#include "base/tar.hpp"
#include "base/tree_walk.hpp"
#include "builder/chunked_gzip.hpp"
#include "images/tree_paths.hpp"

namespace mlenv {
namespace {

/// All paths below `root`, relative, sorted by bytes.
std::vector<std::string> list_tree(const fs::path& root) {
  std::vector<std::string> paths;
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    check_layer_path(entry.path);
    paths.emplace_back(entry.path);
    return true;
  };
  walk_tree(root, walk);
  std::sort(paths.begin(), paths.end());
  return paths;
}

class TreeTar {
 public:
  TreeTar(const TreeToPack& tree, Sink& sink) : tree_(tree), root_(tree.root), sink_(sink) {}

  void write() {
    for (const std::string& path : list_tree(root_)) add(path);
    sink_.write(tar_end());
  }

 private:
  void add(const std::string& path) {
    check_no_whiteout(path);
    struct stat status {};
    if (::lstat((root_ / path).c_str(), &status) != 0)
      throw os_error(errno, "cannot read `/{}`", path);
    TarEntry entry;
    entry.path = path;
    entry.mode = status.st_mode & 07777U;
    entry.mtime = tree_.mtime;
    const std::string absolute = "/" + path;
    if (const auto owner = tree_.owners.find(absolute); owner != tree_.owners.end()) {
      entry.uid = owner->second.uid;
      entry.gid = owner->second.gid;
    }
    if (const auto found = tree_.capabilities.find(absolute); found != tree_.capabilities.end()) {
      entry.xattrs["security.capability"] = found->second;
    }
    if (S_ISREG(status.st_mode)) return add_file(entry, status);
    if (S_ISDIR(status.st_mode)) {
      entry.type = TarEntry::Type::folder;
    } else if (S_ISLNK(status.st_mode)) {
      entry.type = TarEntry::Type::symlink;
      entry.mode = 0777;
      entry.link = fs::read_symlink(root_ / path).string();
    } else if (S_ISFIFO(status.st_mode)) {
      entry.type = TarEntry::Type::fifo;
    } else if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) {
      entry.type =
          S_ISCHR(status.st_mode) ? TarEntry::Type::char_device : TarEntry::Type::block_device;
      entry.device_major = major(status.st_rdev);
      entry.device_minor = minor(status.st_rdev);
    } else {
      return;
    }
    sink_.write(tar_header(entry));
  }

  void add_file(TarEntry& entry, const struct stat& status) {
    if (status.st_nlink > 1) {
      const auto [first, is_new] =
          links_.emplace(std::pair{status.st_dev, status.st_ino}, entry.path);
      if (!is_new) {
        entry.type = TarEntry::Type::hardlink;
        entry.link = first->second;
        sink_.write(tar_header(entry));
        return;
      }
    }
    entry.size_bytes = static_cast<std::uint64_t>(status.st_size);
    sink_.write(tar_header(entry));
    const Fd fd = open_file(root_ / entry.path);
    SliceSource source{fd.get(), 0, entry.size_bytes};
    copy(source, sink_);
    sink_.write(Bytes(tar_padding(entry.size_bytes)));
  }

  const TreeToPack& tree_;
  const fs::path& root_;
  Sink& sink_;
  std::map<std::pair<dev_t, ino_t>, std::string> links_;
};

}  // namespace

Layer pack_tree(const TreeToPack& tree, Store& store, Pool& pool) {
  Store::Staged staged = store.stage();
  ChunkedGzip gzip{staged.fd(), pool};
  TreeTar{tree, gzip}.write();
  Layer layer = gzip.finish(tree.title);
  staged.commit(layer.blob.digest);
  return layer;
}

}  // namespace mlenv
