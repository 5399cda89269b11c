#include "images/store.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <unordered_map>

#include "base/error.hpp"
#include "base/hash_exchange.hpp"
#include "images/store_folder.hpp"

namespace mlenv {
namespace {

/// From an offset to the end of a file that it owns.
class FileSource final : public Source {
 public:
  FileSource(Fd fd, fs::path path, std::uint64_t offset, std::uint64_t length)
      : path_(std::move(path)), fd_(std::move(fd)), slice_(fd_.get(), offset, length) {}
  std::size_t read(ByteSpan out) override {
    try {
      return slice_.read(out);
    } catch (Error& error) {
      error.while_doing("reading `" + path_.string() + "`");
      throw;
    }
  }

 private:
  fs::path path_;
  Fd fd_;
  SliceSource slice_;
};

std::uint64_t size_of_file(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw os_error(errno, "cannot read a blob's size");
  return static_cast<std::uint64_t>(status.st_size);
}

/// A slice beyond its wheel's end would make a layer that nobody can read.
void check_slices(StoreFolder& folder, const Spliced& spliced) {
  std::unordered_map<Digest, std::uint64_t> sizes;
  for (const Piece& piece : spliced.pieces) {
    std::uint64_t size = spliced.literals.size();
    if (piece.blob) {
      auto found = sizes.find(*piece.blob);
      if (found == sizes.end()) {
        const Fd fd = folder.open_blob(*piece.blob);
        found = sizes.emplace(*piece.blob, size_of_file(fd.get())).first;
      }
      size = found->second;
    }
    if (piece.length > size || piece.offset > size - piece.length) {
      throw failure("bad-layer", "a slice of {} bytes at {} lies outside of its {} bytes",
                    piece.length, piece.offset, size);
    }
  }
}

}  // namespace

Store::Store(const fs::path& root)
    : folder_(std::make_unique<StoreFolder>(root)), hashes_(std::make_unique<HashExchange>()) {}
Store::~Store() = default;

HashExchange& Store::hashes() const { return *hashes_; }

bool Store::exists(const fs::path& root) { return fs::exists(root / "version"); }

const fs::path& Store::root() const { return folder_->root(); }

bool Store::has(const Digest& digest) const {
  return folder_->has_blob(digest) || folder_->find_spliced(digest).has_value();
}

std::optional<std::uint64_t> Store::size_of(const Digest& digest) const {
  if (folder_->has_blob(digest)) return mlenv::file_size(folder_->blob(digest));
  const auto header = folder_->find_spliced(digest);
  if (!header) return std::nullopt;
  return header->size_bytes;
}

std::unique_ptr<Source> Store::open(const Digest& digest, std::uint64_t offset) const {
  if (!folder_->has_blob(digest) && folder_->find_spliced(digest)) {
    return open_spliced(
        open_item(folder_->spliced(digest)),
        [folder = folder_.get()](const Digest& blob) { return folder->open_blob(blob); }, offset);
  }
  Fd fd = folder_->open_blob(digest);
  const std::uint64_t size = size_of_file(fd.get());
  const std::uint64_t begin = std::min(offset, size);
  return std::make_unique<FileSource>(std::move(fd), folder_->blob(digest), begin, size - begin);
}

std::string Store::read(const Digest& digest, std::uint64_t limit) const {
  const auto source = open(digest);
  std::string content = read_all(*source, limit);
  if (Digest::of(content) == digest) return content;
  throw failure("damaged", "the blob `{}` in the store is damaged", digest.str())
      .hint("run `mlenv store verify --repair`, then build or pull again");
}

std::optional<fs::path> Store::path_of(const Digest& digest) const {
  if (!folder_->has_blob(digest)) return std::nullopt;
  return folder_->blob(digest);
}

Digest Store::put(std::string_view content) {
  Digest digest = Digest::of(content);
  if (folder_->has_blob(digest)) return digest;
  Staged staged = stage();
  write_all(staged.fd(), as_bytes(content));
  staged.commit(digest);
  return digest;
}

Store::Staged Store::stage() {
  fs::path path = folder_->work().fresh("blob");
  Fd fd = open_file(path, O_RDWR | O_CREAT | O_EXCL, 0644);
  return {*folder_, std::move(path), std::move(fd)};
}

Store::Staged::~Staged() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

void Store::Staged::commit(const Digest& digest) {
  fd_.close_checked(path_.string());
  folder_->publish(StoreFolder::Item::blob, path_, digest);
  path_.clear();
}

void Store::put_spliced(const Digest& digest, std::uint64_t size_bytes, const Spliced& spliced) {
  check_slices(*folder_, spliced);
  if (folder_->find_spliced(digest)) return;
  Staged staged = stage();
  FdSink sink{staged.fd()};
  write_spliced(sink, size_bytes, spliced);
  staged.fd_.close_checked(staged.path_.string());
  folder_->publish(StoreFolder::Item::spliced, staged.path_, digest);
  staged.path_.clear();
}

std::optional<std::string> Store::find_key(const Digest& key) const {
  if (!folder_->work().use(folder_->key(key))) return std::nullopt;
  const auto text = read_file_if_exists(folder_->key(key));
  const std::size_t end = text ? text->find('\n') : std::string::npos;
  if (end == std::string::npos) return std::nullopt;
  std::string value = text->substr(end + 1);
  if (value.empty() || Digest::of(value).hex() != text->substr(0, end)) return std::nullopt;
  return value;
}

void Store::put_key(const Digest& key, std::string_view value) {
  // The checksum stands in for a mark: a file that a power cut tore counts as absent.
  folder_->publish_small(fmt::format("{}\n{}", Digest::of(value).hex(), value), folder_->key(key),
                         false);
}

std::optional<fs::path> Store::find_tree(const Digest& diff_id) const {
  if (!folder_->has_tree(diff_id)) return std::nullopt;
  return folder_->tree(diff_id) / "fs";
}

Store::StagedTree Store::stage_tree() {
  fs::path path = folder_->work().fresh("tree");
  make_folders(path / "fs");
  return {*folder_, std::move(path)};
}

Store::StagedTree::~StagedTree() {
  if (!path_.empty()) remove_work(path_);
}

fs::path Store::StagedTree::publish(const Digest& diff_id) {
  folder_->publish(StoreFolder::Item::tree, path_, diff_id);
  path_.clear();
  return folder_->tree(diff_id) / "fs";
}

TemporaryFolder Store::scratch() const { return TemporaryFolder{folder_->work().folder()}; }

void Store::need_only(const std::vector<Digest>& digests) const {
  folder_->work().need_only(digests);
}

bool Store::needs_sync() const { return folder_->marks().has_added(); }

void Store::sync() const {
  const std::vector<fs::path> marks = folder_->marks().current();
  const Fd root = open_file(folder_->root(), O_RDONLY | O_DIRECTORY);
  if (::syncfs(root.get()) != 0) {
    throw os_error(errno, "cannot write `{}` to disk", folder_->root().string());
  }
  for (const fs::path& mark : marks) ::unlink(mark.c_str());
}

}  // namespace mlenv
