#include "images/store_folder.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <ctime>

#include "base/error.hpp"
#include "base/log.hpp"
#include "images/store_mark.hpp"

namespace mlenv {
namespace {

constexpr unsigned kVersion = 1;

void sync_fd(int fd, const fs::path& shown) {
  if (::fsync(fd) != 0) throw os_error(errno, "cannot write `{}` to disk", shown.string());
}

/// A file's entry in its folder.
void sync_name(const fs::path& file) {
  sync_fd(open_file(file.parent_path(), O_RDONLY | O_DIRECTORY).get(), file);
}

fs::path prepare(const fs::path& root) {
  fs::path path = fs::absolute(root);
  settle_store_folder(path);
  const auto text = read_file_if_exists(path / "version");
  if (text) {
    unsigned version = 0;
    const auto read = std::from_chars(text->data(), text->data() + text->size(), version);
    // A version of ours that a power cut tore: nothing is known of the store but that it is young.
    if (read.ec != std::errc{}) {
      ::unlink((path / "version").c_str());
    } else if (version != kVersion) {
      throw failure("store-version", "the store `{}` has format {}, this mlenv knows format {}",
                    path.string(), version, kVersion)
          .hint("use the newer mlenv that made it, or set MLENV_STORE to another folder");
    }
  }
  return path;
}

/// The file now at `path` has this digest.
bool hashes_to(const fs::path& path, const Digest& digest) {
  const Fd fd = open_item(path);
  FdSource source{fd.get()};
  Sha256 hash;
  copy(source, hash);
  return hash.finish() == digest;
}

/// Never replaces; false when `to` is there already.
bool rename_new(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST || errno == ENOTEMPTY) return false;
  // Some file systems know only plain renames, which replace a file by its equal and refuse to
  // replace a folder that holds something.
  if (errno == EINVAL || errno == ENOSYS) {
    if (::rename(from.c_str(), to.c_str()) == 0) return true;
    if (errno == EEXIST || errno == ENOTEMPTY) return false;
  }
  throw os_error(errno, "cannot put `{}` in place", to.string());
}

}  // namespace

std::optional<Digest> digest_of_name(const fs::path& file) {
  try {
    return Digest::from_hex(file.filename().string());
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_there(const fs::path& path) { return ::access(path.c_str(), F_OK) == 0; }

/// Somebody may have put a link, a pipe or a device there, which are not followed or waited for.
Fd open_item_if_there(const fs::path& path) {
  Fd fd{::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  if (!fd && errno == ENOENT) return fd;
  if (!fd && errno != ELOOP) throw os_error(errno, "cannot open `{}`", path.string());
  struct stat status {};
  const bool is_file = fd && ::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode);
  if (is_file) return fd;
  throw failure("damaged", "`{}` in the store is no file", path.string())
      .hint("run `mlenv store verify --repair`, then build or pull again");
}

Fd open_item(const fs::path& path) {
  if (Fd fd = open_item_if_there(path)) return fd;
  throw os_error(ENOENT, "cannot open `{}`", path.string());
}

Error absent_blob(const Digest& digest) {
  return failure("absent", "the store has no `{}`", digest.str())
      .hint("fetch it with `mlenv pull`, or rebuild it with `mlenv build`");
}

StoreFolder::StoreFolder(const fs::path& root)
    : root_(prepare(root)), marks_(root_ / "unsynced"), work_(root_ / "tmp", root_ / "tmp.lock") {
  if (!is_there(root_ / "version")) {
    publish_small(std::to_string(kVersion) + "\n", root_ / "version", true);
  }
  work_.sweep();
}

fs::path StoreFolder::place(Item item, const Digest& digest) const {
  switch (item) {
    case Item::blob:
      return blob(digest);
    case Item::spliced:
      return spliced(digest);
    case Item::tree:
      return tree(digest);
  }
  throw Error{Kind::internal, "bug", "no such kind of item in the store"};
}

FileLock StoreFolder::lock_suspects() const {
  return FileLock::wait(root_ / "suspects.lock", FileLock::Mode::exclusive);
}

void StoreFolder::publish(Item item, const fs::path& made, const Digest& digest) {
  const fs::path target = place(item, digest);
  if (marks_.is_suspect(item, digest)) {
    std::optional<fs::path> trash;
    {
      const FileLock lock = lock_suspects();
      if (marks_.is_still_marked(item, digest)) drop_locked(item, digest, trash);
    }
    if (trash) remove_tree(*trash);
  }
  if (!work_.use(target)) {
    (void)work_.use(made);  // whose bytes may have come long ago
    marks_.add(item, digest, work_.unique());
    if (rename_new(made, target)) return;
  }
  remove_tree(made);
}

void StoreFolder::publish_small(std::string_view text, const fs::path& target, bool durable) {
  const fs::path made = work_.fresh("text");
  try {
    const Fd fd = open_file(made, O_WRONLY | O_CREAT | O_EXCL, 0644);
    write_all(fd.get(), as_bytes(text));
    if (durable) sync_fd(fd.get(), target);
    if (::rename(made.c_str(), target.c_str()) != 0) {
      throw os_error(errno, "cannot put `{}` in place", target.string());
    }
  } catch (const Error&) {
    ::unlink(made.c_str());
    throw;
  }
  if (durable) sync_name(target);
}

void StoreFolder::publish_text(std::string_view text, const Digest& digest) {
  if (!keeps_text(text, digest)) publish_small(text, blob(digest), true);
  marks_.clear(Item::blob, digest);
}

/// Four waits for the disk are saved to a build that has nothing to do.
bool StoreFolder::keeps_text(std::string_view text, const Digest& digest) {
  constexpr std::int64_t kMinute = 60;  // longer than file systems keep names to themselves
  const fs::path path = blob(digest);
  struct stat status {};
  if (marks_.is_suspect(Item::blob, digest) || !work_.use(path)) return false;
  if (::stat(path.c_str(), &status) != 0 || ::access(path.c_str(), R_OK) != 0) return false;
  if (read_file_if_exists(path) != text || marks_.is_marked(Item::blob, digest)) return false;
  // Whoever renamed it may have been killed before its name was on the disk.
  if (std::time(nullptr) - status.st_ctim.tv_sec < kMinute) sync_name(path);
  return true;
}

template <typename Check>
bool StoreFolder::settle(Item item, const Digest& digest, Check&& is_right) {
  if (!marks_.is_suspect(item, digest)) return true;
  const FileLock lock = lock_suspects();
  // Another process may have verified it, or dropped it and made it anew.
  if (!marks_.is_still_marked(item, digest)) return is_there(place(item, digest));
  if (is_right()) {
    marks_.clear(item, digest);
    return true;
  }
  log::debug("dropping `{}`: not whole since the last boot", place(item, digest).string());
  std::optional<fs::path> trash;
  drop_locked(item, digest, trash);
  if (trash) remove_tree(*trash);
  return false;
}

void StoreFolder::drop(Item item, const Digest& digest) {
  std::optional<fs::path> trash;
  {
    const FileLock lock = lock_suspects();
    drop_locked(item, digest, trash);
  }
  if (trash) remove_tree(*trash);
}

void StoreFolder::drop_locked(Item item, const Digest& digest, std::optional<fs::path>& trash) {
  const fs::path path = place(item, digest);
  const fs::path away = work_.fresh("dropped");
  if (::rename(path.c_str(), away.c_str()) == 0) {
    trash = away;
  } else if (errno != ENOENT) {
    throw os_error(errno, "cannot remove `{}`", path.string());
  }
  marks_.clear(item, digest);
}

bool StoreFolder::has_blob(const Digest& digest) {
  const fs::path path = blob(digest);
  if (!work_.use(path)) return false;
  return settle(Item::blob, digest, [&] { return hashes_to(path, digest); });
}

Fd StoreFolder::open_blob(const Digest& digest) {
  if (has_blob(digest)) {
    if (Fd fd = open_item_if_there(blob(digest))) return fd;
  }
  throw absent_blob(digest);
}

bool StoreFolder::has_tree(const Digest& diff_id) {
  if (!work_.use(tree(diff_id)) || !is_there(tree(diff_id) / "fs")) return false;
  return settle(Item::tree, diff_id, [] { return false; });
}

std::optional<SplicedHeader> StoreFolder::find_spliced(const Digest& digest) {
  if (!work_.use(spliced(digest))) return std::nullopt;
  const Fd fd = open_item_if_there(spliced(digest));
  if (!fd) return std::nullopt;
  if (!settle(Item::spliced, digest, [&] { return is_spliced_whole(fd.get()); })) {
    return std::nullopt;
  }
  SplicedHeader header = read_spliced_header(fd.get());
  for (const Digest& blob : header.blobs) {
    if (!has_blob(blob)) return std::nullopt;
  }
  return header;
}

}  // namespace mlenv
