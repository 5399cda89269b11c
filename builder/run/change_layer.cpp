#include "builder/run/change_layer.hpp"

#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/tar.hpp"
#include "builder/chunked_gzip.hpp"
#include "builder/run/changes.hpp"
#include "images/tree_paths.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kLeastSecret = 6;  // shorter ones are in any file

/// Looks for secrets in what passes.
class SecretFinder {
 public:
  /// `holder` is what messages call it.
  SecretFinder(const std::map<std::string, std::string>& secrets, std::string holder)
      : holder_(std::move(holder)) {
    for (const auto& [name, content] : secrets) {
      const std::size_t end = content.find_last_not_of(" \t\r\n");
      const std::string text = end == std::string::npos ? "" : content.substr(0, end + 1);
      if (text.size() < kLeastSecret) continue;
      secrets_.emplace_back(name, text);
      longest_ = std::max(longest_, text.size());
    }
  }

  void pass(std::string_view bytes) {
    if (secrets_.empty()) return;
    window_.append(bytes);
    for (const auto& [name, text] : secrets_) {
      if (::memmem(window_.data(), window_.size(), text.data(), text.size()) == nullptr) continue;
      throw failure("secret-stored", "{} holds the secret `{}`, and would be part of the image",
                    holder_, name)
          .hint("remove it in the same step, or read it from /run/secrets where it is needed");
    }
    if (window_.size() >= longest_) window_.erase(0, window_.size() - (longest_ - 1));
  }

 private:
  std::string holder_;
  std::vector<std::pair<std::string, std::string>> secrets_;
  std::size_t longest_ = 1;
  std::string window_;
};

/// Also one that its owner may not read: it is ours.
Fd open_content(const Change& change) {
  Fd fd{::open(change.source.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  if (fd || errno != EACCES) {
    if (!fd) throw os_error(errno, "cannot read `{}`", change.source.string());
    return fd;
  }
  (void)::chmod(change.source.c_str(), 0600);
  fd = open_file(change.source, O_RDONLY | O_NOFOLLOW);
  // Where its owner alone changed this is the store's file.
  (void)::fchmod(fd.get(), change.status.st_mode & 07777U);
  return fd;
}

class ChangeTar {
 public:
  ChangeTar(const Changes& all, Sink& sink) : all_(all), sink_(sink) {}

  void add(const std::string& path, const Change& change) {
    if (change.removed()) return add_whiteout(path);
    require_no_secret("the name of a file", path);
    TarEntry entry = entry_of(path);
    entry.mode = change.status.st_mode & 07777U;
    const std::string absolute = "/" + path;
    if (const auto owner = all_.owners.find(absolute); owner != all_.owners.end()) {
      entry.uid = owner->second.uid;
      entry.gid = owner->second.gid;
    }
    if (const auto found = all_.capabilities.find(absolute); found != all_.capabilities.end()) {
      entry.xattrs["security.capability"] = found->second;
    }
    if (S_ISREG(change.status.st_mode)) return add_file(entry, change);
    if (S_ISDIR(change.status.st_mode)) {
      entry.type = TarEntry::Type::folder;
    } else if (S_ISLNK(change.status.st_mode)) {
      entry.type = TarEntry::Type::symlink;
      entry.mode = 0777;
      entry.link = fs::read_symlink(change.source).string();
      require_no_secret("the target of a link", entry.link);
    } else {
      entry.type = TarEntry::Type::fifo;
    }
    sink_.write(tar_header(entry));
    // Before what is in the folder, so that no reader takes that away again.
    if (change.opaque) sink_.write(tar_header(entry_of(fmt::format("{}/{}", path, kOpaqueName))));
  }

 private:
  void require_no_secret(std::string holder, std::string_view text) const {
    SecretFinder{all_.secrets, std::move(holder)}.pass(text);
  }

  TarEntry entry_of(const std::string& path) const {
    TarEntry entry;
    entry.path = path;
    entry.mtime = all_.epoch;
    return entry;
  }

  /// A removed path (image-spec layer.md, "Whiteouts").
  void add_whiteout(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    std::string marked = path;
    marked.insert(slash == std::string::npos ? 0 : slash + 1, kWhiteoutPrefix);
    sink_.write(tar_header(entry_of(marked)));
  }

  void add_file(TarEntry& entry, const Change& change) {
    if (change.status.st_nlink > 1) {
      const auto [first, is_new] =
          links_.emplace(std::pair{change.status.st_dev, change.status.st_ino}, entry.path);
      if (!is_new) {
        entry.type = TarEntry::Type::hardlink;
        entry.link = first->second;
        sink_.write(tar_header(entry));
        return;
      }
    }
    entry.size_bytes = static_cast<std::uint64_t>(change.status.st_size);
    sink_.write(tar_header(entry));
    const Fd fd = open_content(change);
    SliceSource source{fd.get(), 0, entry.size_bytes};
    SecretFinder finder{all_.secrets, "`/" + entry.path + "`"};
    FunctionSink content{[&](ByteView bytes) {
      finder.pass(as_text(bytes));
      sink_.write(bytes);
    }};
    copy(source, content);
    sink_.write(Bytes(tar_padding(entry.size_bytes)));
  }

  const Changes& all_;
  Sink& sink_;
  std::map<std::pair<dev_t, ino_t>, std::string> links_;
};

}  // namespace

Layer make_change_layer(const Changes& changes, Store& store, Pool& pool, std::string title) {
  const std::map<std::string, Change> found = ChangeFinder{changes}.find();
  Store::Staged blob = store.stage();
  ChunkedGzip gzip{blob.fd(), pool};
  ChangeTar tar{changes, gzip};
  for (const auto& [path, change] : found) tar.add(path, change);
  gzip.write(tar_end());
  Layer layer = gzip.finish(std::move(title));
  blob.commit(layer.blob.digest);
  return layer;
}

}  // namespace mlenv
