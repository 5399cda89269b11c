#include "builder/layer_writer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/deflate.hpp"
#include "base/error.hpp"
#include "base/gzip.hpp"
#include "base/inflate.hpp"
#include "images/tree_paths.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kStreamBytes = std::size_t{256} << 10;
constexpr std::size_t kStoredBlock = 65535;  // RFC 1951 §3.2.4: LEN is 16 bits
constexpr std::size_t kGlueLimit = std::size_t{1} << 20;

/// Reads exactly the member's raw bytes.
void read_raw(int fd, const ZipMember& member, ByteSpan out) {
  SliceSource source{fd, member.offset, member.compressed_bytes};
  while (!out.empty()) out = out.subspan(source.read(out));
}

Error bad_member(const ZipMember& member, std::string_view what) {
  return failure("bad-wheel", "`{}` in the wheel is damaged", member.name)
      .because(std::string(what));
}

}  // namespace

/// A member's compressed bytes on their way to the inflater: each buffer is hashed in step with
/// what is inflated from it, and whatever is left of it before the next.
class LayerWriter::RawTap final : public Source {
 public:
  RawTap(Source& from, LayerWriter& writer) : from_(from), writer_(writer) {}
  std::size_t read(ByteSpan out) override {
    writer_.raw_rest();
    const std::size_t count = from_.read(out);
    writer_.raw_later(out.first(count));
    return count;
  }

 private:
  Source& from_;
  LayerWriter& writer_;
};

/// The tar in gzip members, which are hashed on their way: as they are, and inflated.
class LayerWriter::SegmentTar final : public Source {
 public:
  SegmentTar(Source& compressed, LayerWriter& writer)
      : compressed_(compressed), writer_(writer), raw_(2 * kRoom), tar_(kChunkBytes) {}
  std::size_t read(ByteSpan out) override {
    while (rest_.empty()) {
      if (!next_member()) return 0;
    }
    const std::size_t count = std::min(out.size(), rest_.size());
    std::copy_n(rest_.begin(), count, out.begin());
    rest_ = rest_.subspan(count);
    return count;
  }

 private:
  /// The longest member: stored blocks, in the worst case.
  static constexpr std::size_t kRoom = kChunkBytes + kStreamBytes;

  bool next_member() {
    if (held_.size() < kRoom) fill();
    if (held_.empty()) return false;
    const InflatedPart part = gunzip_member(held_, tar_);
    held_ = held_.subspan(part.used);
    rest_ = ByteView(tar_).first(part.written);
    writer_.tar_bytes(rest_);
    return true;
  }
  void fill() {
    std::memmove(raw_.data(), held_.data(), held_.size());
    std::size_t size = held_.size();
    while (size < raw_.size()) {
      const std::size_t count = compressed_.read(ByteSpan(raw_).subspan(size));
      if (count == 0) break;
      writer_.raw_bytes(ByteView(raw_).subspan(size, count));
      size += count;
    }
    held_ = ByteView(raw_).first(size);
  }

  Source& compressed_;
  LayerWriter& writer_;
  Bytes raw_;
  ByteView held_ = ByteView(raw_).first(0);  ///< of `raw_`, not inflated yet
  Bytes tar_;
  ByteView rest_;  ///< of `tar_`, not read yet
};

LayerWriter::LayerWriter(TreeWriter* tree, std::int64_t mtime, HashExchange& exchange)
    : tree_(tree), mtime_(mtime), tar_hash_(exchange) {}

void LayerWriter::add_folder(const std::string& path) {
  if (folders_.contains(path)) return;
  add_parents(path);
  folders_.insert(path);
  TarEntry entry;
  entry.type = TarEntry::Type::folder;
  entry.path = path;
  entry.mode = 0755;
  header(entry);
  if (tree_ != nullptr)
    tree_->add_folder(path, {.mode = 0755, .uid = 0, .gid = 0, .mtime = mtime_});
}

void LayerWriter::add_opaque_folder(const std::string& path) {
  add_folder(path);
  TarEntry mark;
  mark.path = path + "/.wh..wh..opq";
  mark.mtime = mtime_;
  glue(tar_header(mark));
  if (tree_ != nullptr) tree_->mark_opaque(path);
}

void LayerWriter::add_parents(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash != std::string::npos) add_folder(path.substr(0, slash));
}

void LayerWriter::add_text(const std::string& path, std::uint32_t mode, std::string_view text) {
  add_parents(path);
  TarEntry entry;
  entry.path = path;
  entry.mode = mode;
  entry.size_bytes = text.size();
  header(entry);
  glue(as_bytes(text));
  glue(Bytes(tar_padding(text.size())));
  if (tree_ != nullptr) {
    tree_->add_file(path, {.mode = mode, .uid = 0, .gid = 0, .mtime = mtime_}, as_bytes(text));
  }
}

void LayerWriter::add_symlink(const std::string& path, const std::string& target) {
  add_parents(path);
  TarEntry entry;
  entry.type = TarEntry::Type::symlink;
  entry.path = path;
  entry.link = target;
  entry.mode = 0777;
  header(entry);
  if (tree_ != nullptr) {
    tree_->add_symlink(path, target, {.mode = 0777, .uid = 0, .gid = 0, .mtime = mtime_});
  }
}

void LayerWriter::add_member(const std::string& path, std::uint32_t mode, const ZipMember& member,
                             int wheel_fd, const Digest& wheel) {
  add_parents(path);
  TarEntry entry;
  entry.path = path;
  entry.mode = mode;
  entry.size_bytes = member.size_bytes;
  header(entry);
  if (tree_ != nullptr) {
    tree_->begin_file(path, {.mode = mode, .uid = 0, .gid = 0, .mtime = mtime_}, member.size_bytes);
  }
  if (member.size_bytes == 0) {
    // No body: the header alone says it.
    if (member.crc32 != 0) throw bad_member(member, "its CRC-32 does not match");
  } else if (member.method == ZipMember::Method::stored) {
    stored_member(member, wheel_fd, wheel);
  } else {
    flush();
    literal(gzip_header());
    slice(wheel, member.offset, member.compressed_bytes);
    if (member.size_bytes <= kWholeInflateLimit && member.compressed_bytes <= kWholeInflateLimit) {
      inflate_member(member, wheel_fd);
    } else {
      stream_member(member, wheel_fd);
    }
    literal(gzip_trailer(member.crc32, member.size_bytes));
  }
  if (tree_ != nullptr) tree_->end_file();
  glue(Bytes(tar_padding(member.size_bytes)));
}

void LayerWriter::inflate_member(const ZipMember& member, int wheel_fd) {
  raw_.resize(std::max(raw_.size(), static_cast<std::size_t>(member.compressed_bytes)));
  inflated_.resize(std::max(inflated_.size(), static_cast<std::size_t>(member.size_bytes)));
  const ByteSpan raw = ByteSpan(raw_).first(static_cast<std::size_t>(member.compressed_bytes));
  const ByteSpan out = ByteSpan(inflated_).first(static_cast<std::size_t>(member.size_bytes));
  read_raw(wheel_fd, member, raw);
  inflate_whole(raw, out);
  std::uint32_t crc = 0;
  raw_later(raw);
  content(out, crc);
  raw_rest();
  if (crc != member.crc32) throw bad_member(member, "its CRC-32 does not match");
}

void LayerWriter::stream_member(const ZipMember& member, int wheel_fd) {
  SliceSource raw{wheel_fd, member.offset, member.compressed_bytes};
  RawTap tap{raw, *this};
  std::uint32_t crc = 0;
  FunctionSink sink{[&](ByteView bytes) { content(bytes, crc); }};
  inflate_stream(tap, sink, member.size_bytes);
  raw_rest();
  if (crc != member.crc32) throw bad_member(member, "its CRC-32 does not match");
}

void LayerWriter::stored_member(const ZipMember& member, int wheel_fd, const Digest& wheel) {
  raw_.resize(std::max(raw_.size(), kStreamBytes));
  std::uint32_t crc = 0;
  if (member.size_bytes <= kStoredBlock) {
    const ByteSpan raw = ByteSpan(raw_).first(static_cast<std::size_t>(member.size_bytes));
    read_raw(wheel_fd, member, raw);
    crc = crc32(crc, raw);
    if (tree_ != nullptr) tree_->write(raw);
    glue(raw);
  } else {
    flush();
    literal(gzip_header());
    for (std::uint64_t done = 0; done < member.size_bytes;) {
      const auto length =
          static_cast<std::size_t>(std::min<std::uint64_t>(kStoredBlock, member.size_bytes - done));
      const bool last = done + length == member.size_bytes;
      const std::array<std::byte, 5> block{std::byte{last}, static_cast<std::byte>(length & 255U),
                                           static_cast<std::byte>(length >> 8U),
                                           static_cast<std::byte>(~length & 255U),
                                           static_cast<std::byte>((~length >> 8U) & 255U)};
      literal(block);
      slice(wheel, member.offset + done, length);
      ByteSpan raw = ByteSpan(raw_).first(length);
      SliceSource source{wheel_fd, member.offset + done, length};
      for (ByteSpan rest = raw; !rest.empty();) rest = rest.subspan(source.read(rest));
      raw_later(raw);
      content(raw, crc);
      done += length;
    }
    literal(gzip_trailer(member.crc32, member.size_bytes));
  }
  if (crc != member.crc32) throw bad_member(member, "its CRC-32 does not match");
}

std::uint64_t LayerWriter::add_segment(const Digest& blob, std::uint64_t size_bytes,
                                       Source& compressed) {
  flush();
  slice(blob, 0, size_bytes);
  const std::uint64_t before = tar_size_bytes_;
  SegmentTar tar{compressed, *this};
  if (tree_ != nullptr)
    read_tar(tar, [this](const TarEntry& entry, Source& data) { tree_->add(entry, data); });
  Bytes rest(kStreamBytes);
  while (tar.read(rest) > 0) {
  }
  return tar_size_bytes_ - before;
}

MadeLayer LayerWriter::finish(std::string title) {
  glue(tar_end());
  flush();
  if (tree_ != nullptr) tree_->finish();
  return {{.blob = {std::string(kLayerGzipType), raw_hash_.finish(), raw_size_bytes_},
           .diff_id = tar_hash_.finish(),
           .tar_bytes = tar_size_bytes_,
           .title = std::move(title)},
          std::move(spliced_)};
}

void LayerWriter::header(const TarEntry& entry) {
  check_no_whiteout(entry.path);
  TarEntry timed = entry;
  timed.mtime = mtime_;
  glue(tar_header(timed));
}

void LayerWriter::glue(ByteView bytes) {
  tar_bytes(bytes);
  glue_.insert(glue_.end(), bytes.begin(), bytes.end());
  if (glue_.size() >= kGlueLimit) flush();
}

void LayerWriter::flush() {
  if (glue_.empty()) return;
  literal(gzip_stored(glue_));
  glue_.clear();
}

void LayerWriter::literal(ByteView bytes) {
  raw_bytes(bytes);
  if (spliced_.pieces.empty() || spliced_.pieces.back().blob) {
    spliced_.pieces.push_back({std::nullopt, spliced_.literals.size(), 0});
  }
  spliced_.pieces.back().length += bytes.size();
  spliced_.literals.append(as_text(bytes));
}

void LayerWriter::slice(const Digest& blob, std::uint64_t offset, std::uint64_t length) {
  spliced_.pieces.push_back({blob, offset, length});
}

void LayerWriter::raw_bytes(ByteView bytes) {
  raw_hash_.write(bytes);
  raw_size_bytes_ += bytes.size();
}

void LayerWriter::tar_bytes(ByteView bytes) {
  tar_size_bytes_ += bytes.size();
  tar_hash_.write_copy(bytes);
}

void LayerWriter::both_bytes(ByteView raw, ByteView bytes) {
  raw_size_bytes_ += raw.size();
  tar_size_bytes_ += bytes.size();
  tar_hash_.write_beside(bytes, raw_hash_, raw);
}

void LayerWriter::raw_later(ByteView bytes) { raw_rest_ = bytes; }

void LayerWriter::raw_rest() { raw_bytes(std::exchange(raw_rest_, {})); }

void LayerWriter::content(ByteView bytes, std::uint32_t& crc) {
  // In pieces that stay in the processor's cache between the three.
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), kStreamBytes))) {
    const ByteView piece = bytes.first(std::min(bytes.size(), kStreamBytes));
    crc = crc32(crc, piece);
    const ByteView raw = raw_rest_.first(std::min(raw_rest_.size(), piece.size()));
    raw_rest_ = raw_rest_.subspan(raw.size());
    both_bytes(raw, piece);
    if (tree_ != nullptr) tree_->write(piece);
  }
}

}  // namespace mlenv
