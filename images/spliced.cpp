#include "images/spliced.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "images/store.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kSplicedMagic = "mlspl001";
constexpr std::size_t kHeaderBytes = 8 + 8 + 4 + 4 + 8;
constexpr std::size_t kHexBytes = 64;
constexpr std::size_t kPieceRecordBytes = 4 + 8 + 8;
constexpr std::uint32_t kLiteral = 0xFFFFFFFF;
constexpr std::uint32_t kMaxPieces = 1U << 26U;
constexpr std::size_t kLiteralBuffer = std::size_t{256} << 10U;
/// Layers of many small wheels are read from few at a time.
constexpr std::size_t kOpenBlobs = 32;

struct Slice {
  std::uint32_t blob = kLiteral;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

void put_u32(std::string& out, std::uint32_t value) {
  for (unsigned i = 0; i < 4; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xFFU));
}
void put_u64(std::string& out, std::uint64_t value) {
  for (unsigned i = 0; i < 8; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xFFU));
}
std::uint64_t get(std::string_view bytes, unsigned width) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < width; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}
std::uint32_t get_u32(std::string_view bytes) { return static_cast<std::uint32_t>(get(bytes, 4)); }
std::uint64_t get_u64(std::string_view bytes) { return get(bytes, 8); }

Error damaged(std::string_view why) {
  return failure("damaged", "a layer's list of pieces in the store is damaged")
      .because(std::string(why))
      .hint("run `mlenv store verify --repair`, then build or pull again");
}

std::string read_text_at(int fd, std::uint64_t offset, std::uint64_t length) {
  std::string text(length, '\0');
  SliceSource source{fd, offset, length};
  ByteSpan rest = std::as_writable_bytes(std::span(text));
  try {
    while (!rest.empty()) rest = rest.subspan(source.read(rest));
  } catch (const Error& error) {
    if (error.code() != "truncated") throw;
    throw damaged("it ends early");
  }
  return text;
}

/// Where the parts of a file with this header begin.
struct Extents {
  explicit Extents(const SplicedHeader& header)
      : pieces(kHeaderBytes + header.blobs.size() * kHexBytes),
        literals(pieces + std::uint64_t{header.pieces} * kPieceRecordBytes),
        checksum(literals + header.literal_bytes) {}
  std::uint64_t pieces, literals, checksum;
};

struct Compact {
  std::vector<Digest> blobs;
  std::vector<Slice> slices;
};

Compact compact(const Spliced& spliced) {
  Compact out;
  std::map<Digest, std::uint32_t> numbers;
  for (const Piece& piece : spliced.pieces) {
    if (piece.length == 0) continue;
    std::uint32_t number = kLiteral;
    if (piece.blob) {
      const auto [at, added] =
          numbers.try_emplace(*piece.blob, static_cast<std::uint32_t>(out.blobs.size()));
      if (added) out.blobs.push_back(*piece.blob);
      number = at->second;
    }
    Slice* last = out.slices.empty() ? nullptr : &out.slices.back();
    if (last != nullptr && last->blob == number && last->offset + last->length == piece.offset) {
      last->length += piece.length;
    } else {
      out.slices.push_back({number, piece.offset, piece.length});
    }
  }
  return out;
}

class SplicedSource final : public Source {
 public:
  SplicedSource(Fd file, std::function<Fd(const Digest&)> open_blob, std::uint64_t offset)
      : file_(std::move(file)),
        open_blob_(std::move(open_blob)),
        header_(read_spliced_header(file_.get())),
        extents_(header_) {
    read_table();
    seek(offset);
  }

  std::size_t read(ByteSpan out) override {
    std::size_t filled = 0;
    while (filled < out.size() && current_ < slices_.size()) {
      const Slice& slice = slices_[current_];
      const std::uint64_t want =
          std::min<std::uint64_t>(slice.length - within_, out.size() - filled);
      const ByteSpan part = out.subspan(filled, static_cast<std::size_t>(want));
      const std::uint64_t at = slice.offset + within_;
      const std::size_t count =
          slice.blob == kLiteral ? read_literal(part, at) : read_blob(part, slice.blob, at);
      filled += count;
      within_ += count;
      if (within_ == slice.length) {
        ++current_;
        within_ = 0;
      }
    }
    return filled;
  }

 private:
  void read_table() {
    const std::string table =
        read_text_at(file_.get(), extents_.pieces, extents_.literals - extents_.pieces);
    slices_.reserve(header_.pieces);
    starts_.reserve(header_.pieces);
    std::uint64_t at = 0;
    for (std::string_view rest = table; !rest.empty(); rest.remove_prefix(kPieceRecordBytes)) {
      const Slice slice{get_u32(rest), get_u64(rest.substr(4)), get_u64(rest.substr(12))};
      const bool inside = slice.blob == kLiteral
                              ? slice.length <= header_.literal_bytes &&
                                    slice.offset <= header_.literal_bytes - slice.length
                              : slice.blob < header_.blobs.size();
      if (!inside || slice.length == 0 || slice.length > header_.size_bytes - at) {
        throw damaged("a piece lies outside of its file");
      }
      starts_.push_back(at);
      slices_.push_back(slice);
      at += slice.length;
    }
    if (at != header_.size_bytes) throw damaged("its pieces do not add up");
  }

  void seek(std::uint64_t offset) {
    if (offset >= header_.size_bytes) {
      current_ = slices_.size();
      return;
    }
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
    current_ = static_cast<std::size_t>(after - starts_.begin()) - 1;
    within_ = offset - starts_[current_];
  }

  /// Literals follow one another in the file, whatever lies between them in the layer.
  std::size_t read_literal(ByteSpan out, std::uint64_t at) {
    if (at < literals_at_ || at >= literals_at_ + literals_.size()) {
      const std::uint64_t left = header_.literal_bytes - at;
      literals_ = read_text_at(file_.get(), extents_.literals + at,
                               std::min<std::uint64_t>(left, kLiteralBuffer));
      literals_at_ = at;
    }
    const auto skip = static_cast<std::size_t>(at - literals_at_);
    const std::size_t count = std::min(out.size(), literals_.size() - skip);
    std::memcpy(out.data(), literals_.data() + skip, count);
    return count;
  }

  std::size_t read_blob(ByteSpan out, std::uint32_t number, std::uint64_t at) {
    auto found = open_.find(number);
    if (found == open_.end()) {
      if (open_.size() >= kOpenBlobs) open_.clear();
      found = open_.emplace(number, open_blob_(header_.blobs[number])).first;
    }
    SliceSource slice{found->second.get(), at, out.size()};
    return slice.read(out);
  }

  Fd file_;
  std::function<Fd(const Digest&)> open_blob_;
  SplicedHeader header_;
  Extents extents_;
  std::vector<Slice> slices_;
  std::vector<std::uint64_t> starts_;
  std::size_t current_ = 0;
  std::uint64_t within_ = 0;
  std::string literals_;
  std::uint64_t literals_at_ = 0;
  std::map<std::uint32_t, Fd> open_;
};

}  // namespace

void write_spliced(Sink& out, std::uint64_t size_bytes, const Spliced& spliced) {
  const Compact list = compact(spliced);
  std::uint64_t sum = 0;
  for (const Slice& slice : list.slices) sum += slice.length;
  if (sum != size_bytes || list.slices.size() > kMaxPieces) {
    throw failure("bad-layer", "a layer of {} bytes was given as {} pieces of {} bytes together",
                  size_bytes, list.slices.size(), sum);
  }
  std::string head{kSplicedMagic};
  put_u64(head, size_bytes);
  put_u32(head, static_cast<std::uint32_t>(list.blobs.size()));
  put_u32(head, static_cast<std::uint32_t>(list.slices.size()));
  put_u64(head, spliced.literals.size());
  for (const Digest& blob : list.blobs) head += blob.hex();
  for (const Slice& slice : list.slices) {
    put_u32(head, slice.blob);
    put_u64(head, slice.offset);
    put_u64(head, slice.length);
  }
  Sha256 hash;
  hash.write(as_bytes(head));
  hash.write(as_bytes(spliced.literals));
  out.write(as_bytes(head));
  out.write(as_bytes(spliced.literals));
  out.write(as_bytes(hash.finish().hex()));
}

SplicedHeader read_spliced_header(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw os_error(errno, "cannot read a layer's list of pieces");
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  if (file_bytes < kHeaderBytes) throw damaged("it is too short");
  const std::string head = read_text_at(fd, 0, kHeaderBytes);
  if (!head.starts_with(kSplicedMagic)) throw damaged("it does not begin as one");
  const std::string_view numbers = std::string_view(head).substr(kSplicedMagic.size());
  SplicedHeader out;
  out.size_bytes = get_u64(numbers);
  const std::uint64_t blobs = get_u32(numbers.substr(8));
  out.pieces = get_u32(numbers.substr(12));
  out.literal_bytes = get_u64(numbers.substr(16));
  // No sum of these can overflow: the counts have 32 bits.
  const std::uint64_t tables =
      kHeaderBytes + blobs * kHexBytes + std::uint64_t{out.pieces} * kPieceRecordBytes + kHexBytes;
  if (file_bytes < tables || out.literal_bytes != file_bytes - tables) {
    throw damaged("its length is not what it says");
  }
  const std::string hex = read_text_at(fd, kHeaderBytes, blobs * kHexBytes);
  try {
    for (std::size_t at = 0; at < hex.size(); at += kHexBytes) {
      out.blobs.push_back(Digest::from_hex(std::string_view(hex).substr(at, kHexBytes)));
    }
  } catch (const Error&) {
    throw damaged("a wheel's digest in it is malformed");
  }
  return out;
}

bool is_spliced_whole(int fd) {
  try {
    const Extents extents{read_spliced_header(fd)};
    SliceSource source{fd, 0, extents.checksum};
    Sha256 hash;
    copy(source, hash);
    return hash.finish().hex() == read_text_at(fd, extents.checksum, kHexBytes);
  } catch (const Error& error) {
    if (error.code() != "damaged" && error.code() != "truncated") throw;
    return false;
  }
}

std::unique_ptr<Source> open_spliced(Fd file, std::function<Fd(const Digest&)> open_blob,
                                     std::uint64_t offset) {
  return std::make_unique<SplicedSource>(std::move(file), std::move(open_blob), offset);
}

}  // namespace mlenv
