#include "images/partial_blob.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/error.hpp"
#include "base/own_entries.hpp"
#include "base/text.hpp"
#include "images/store.hpp"
#include "images/store_folder.hpp"

namespace mlenv {
namespace {

constexpr const char* kHave = ".have";
constexpr std::size_t kReadBytes = std::size_t{256} << 10U;

/// What must hold for the pieces of a file to be believed.
std::string header_of(std::uint64_t size) {
  return fmt::format("1 {} {}\n",
                     trim(read_file_if_exists("/proc/sys/kernel/random/boot_id").value_or("?")),
                     size);
}

/// The file at `path`, made where it is absent, and nobody else's; none: somebody has it.
Fd open_alone(const fs::path& path) {
  while (true) {
    Fd fd = open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0644);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return {};
      throw os_error(errno, "cannot lock `{}`", path.string());
    }
    // Between the two its last owner may have made it a blob, or taken it away.
    struct stat held {};
    struct stat named {};
    if (::fstat(fd.get(), &held) != 0) throw os_error(errno, "cannot use `{}`", path.string());
    const bool same = ::stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino;
    if (same) return fd;
  }
}

void write_at(int fd, std::uint64_t offset, ByteView bytes, const fs::path& shown) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0) {
      if (errno == EINTR) continue;
      throw os_error(errno, "cannot write `{}`", shown.string());
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

}  // namespace

std::size_t piece_count(std::uint64_t size_bytes) {
  return static_cast<std::size_t>((size_bytes + kPieceBytes - 1) / kPieceBytes);
}

PartialBlob::PartialBlob(StoreFolder& folder, Digest digest, std::uint64_t size_bytes)
    : folder_(folder),
      digest_(std::move(digest)),
      size_(size_bytes),
      have_(piece_count(size_bytes), false),
      missing_(have_.size()),
      hash_(std::make_unique<Sha256>()) {
  if (!open_kept()) {
    path_ = folder_.work().fresh("blob");
    fd_ = open_file(path_, O_RDWR | O_CREAT | O_EXCL, 0644);
  }
  try {
    reserve_room(fd_.get(), size_);
  } catch (const Error&) {
    // Nothing of it is there yet that somebody could go on with.
    if (!have_file_ || missing_ == have_.size()) discard();
    throw;
  }
}

bool PartialBlob::open_kept() {
  const fs::path home = folder_.root() / "partial";
  make_own_folders(home);
  sweep_partial_blobs(home);
  const fs::path path = home / digest_.hex();
  Fd fd = open_alone(path);
  if (!fd) return false;
  path_ = path;
  fd_ = std::move(fd);
  load_pieces();
  return true;
}

/// The other process's, or our own from here on.
void PartialBlob::load_pieces() {
  const fs::path path = path_.string() + kHave;
  const std::string header = header_of(size_);
  const std::string text = read_file_if_exists(path).value_or("");
  const bool believed = text.size() == header.size() + have_.size() && text.starts_with(header);
  if (!believed) {
    if (::ftruncate(fd_.get(), 0) != 0) throw os_error(errno, "cannot use `{}`", path_.string());
    write_file(path, header + std::string(have_.size(), '0'), /*durable=*/false);
  }
  have_file_ = open_file(path, O_WRONLY | O_NOFOLLOW);
  for (std::size_t i = 0; believed && i < have_.size(); ++i) {
    if (text[header.size() + i] != '1') continue;
    have_[i] = true;
    --missing_;
  }
}

PartialBlob::~PartialBlob() {
  // A file that is its process's own goes with it.
  if (!path_.empty() && !have_file_) ::unlink(path_.c_str());
}

void PartialBlob::write(std::uint64_t offset, ByteView bytes) {
  write_at(fd_.get(), offset, bytes, path_);
}

void PartialBlob::mark(std::size_t piece) {
  if (have_[piece]) return;
  have_[piece] = true;
  --missing_;
  if (!have_file_) return;
  const std::uint64_t at = header_of(size_).size() + piece;
  write_at(have_file_.get(), at, as_bytes("1"), path_.string() + kHave);
}

bool PartialBlob::hash_some(std::uint64_t most_bytes) {
  std::string buffer(kReadBytes, '\0');
  const std::uint64_t until = hashed_ + std::min(most_bytes, size_ - hashed_);
  while (hashed_ < until && has(static_cast<std::size_t>(hashed_ / kPieceBytes))) {
    const std::uint64_t piece_end = (hashed_ / kPieceBytes + 1) * kPieceBytes;
    const std::uint64_t end = std::min({until, piece_end, hashed_ + buffer.size()});
    SliceSource slice{fd_.get(), hashed_, end - hashed_};
    while (hashed_ < end) {
      const std::size_t count =
          slice.read(std::as_writable_bytes(std::span(buffer.data(), buffer.size())));
      hash_->write(as_bytes(std::string_view(buffer).substr(0, count)));
      hashed_ += count;
    }
  }
  return hashed_ < size_ && has(static_cast<std::size_t>(hashed_ / kPieceBytes));
}

void PartialBlob::commit() {
  while (hash_some(size_)) {
  }
  const Digest found = hash_->finish();
  if (found != digest_) {
    discard();
    throw failure("digest-mismatch", "`{}` is not what was promised", digest_.str())
        .because(fmt::format("what came hashes to {}", found.str()));
  }
  const fs::path have = have_file_ ? fs::path(path_.string() + kHave) : fs::path();
  // First: whatever is there without it begins anew.
  if (!have.empty()) ::unlink(have.c_str());
  folder_.publish(StoreFolder::Item::blob, path_, digest_);
  path_.clear();
}

void PartialBlob::discard() {
  if (path_.empty()) return;
  if (have_file_) ::unlink((path_.string() + kHave).c_str());
  ::unlink(path_.c_str());
  path_.clear();
}

std::unique_ptr<PartialBlob> Store::partial(const Digest& digest, std::uint64_t size_bytes) {
  return std::make_unique<PartialBlob>(*folder_, digest, size_bytes);
}

void sweep_partial_blobs(const fs::path& folder) {
  constexpr std::time_t kWeek = std::time_t{7} * 24 * 3600;
  for (const fs::path& path : list_folder(folder)) {
    if (!is_digest_name(path.filename().string())) continue;
    const auto status = own_status(path);
    if (!status || !S_ISREG(status->st_mode)) continue;
    if (std::time(nullptr) - status->st_mtime < kWeek) continue;
    const Fd mine = open_alone(path);
    if (!mine) continue;
    ::unlink((path.string() + kHave).c_str());
    ::unlink(path.c_str());
  }
}

}  // namespace mlenv
