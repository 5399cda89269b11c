#include "runner/node/image_intake.hpp"

#include <fcntl.h>
#include <algorithm>

#include "runner/job/misunderstood.hpp"

namespace mlenv::job {
namespace {

/// Between two beats there is time for much more.
constexpr std::uint64_t kHashAtOnce = std::uint64_t{8} << 20U;

/// Part of a file that may become a blob, or go, while it is read.
class OwnSlice final : public Source {
 public:
  OwnSlice(Fd fd, std::uint64_t offset, std::uint64_t length)
      : fd_(std::move(fd)), slice_(fd_.get(), offset, length) {}
  std::size_t read(ByteSpan out) override { return slice_.read(out); }

 private:
  Fd fd_;
  SliceSource slice_;
};

std::string digits_of(const PartialBlob& partial) {
  std::string text(partial.pieces(), '0');
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (partial.has(i)) text[i] = '1';
  }
  return text;
}

}  // namespace

ImageIntake::ImageIntake(Channel& channel, Store& store)
    : channel_(channel),
      store_(store),
      server_([this](const PieceRequest& request) { return source_of(request); }),
      fetches_(
          {[this](const FetchPiece& piece, std::uint64_t offset, std::string_view bytes) {
             write(piece.digest, offset, bytes);
           },
           [this](const FetchPiece& piece) { piece_came(piece.digest, piece.piece); },
           [this](const FetchPiece& piece, const std::string& why) {
             channel_.say(PieceFailed{piece.address, piece.port, piece.digest, piece.piece, why});
           }}),
      registry_(
          {[this](const std::string& digest, std::uint64_t offset, std::string_view bytes) {
             write(digest, offset, bytes);
           },
           [this](const std::string& digest, std::uint64_t piece) { piece_came(digest, piece); },
           [this](const RangeEnded& range) { channel_.say(range); }}) {}

template <class DoIt>
void ImageIntake::keep_error(DoIt&& work) {
  try {
    work();
  } catch (const Error& error) {
    if (!error_) error_ = error;
  }
}

ImageIntake::Coming* ImageIntake::find(const std::string& digest) {
  const auto found = coming_.find(digest);
  return found == coming_.end() ? nullptr : &found->second;
}

void ImageIntake::offer(const std::vector<OfferedBlob>& layers) {
  forget();
  Want want{"image", {}};
  for (const OfferedBlob& blob : layers) {
    const Digest digest = Digest::parse(blob.digest);
    served_.insert(blob.digest);
    if (find(blob.digest) != nullptr || store_.has(digest)) continue;
    auto partial = store_.partial(digest, blob.size_bytes);
    want.blobs.push_back(blob);
    const std::string kept = digits_of(*partial);
    const bool has_some = kept.find('1') != std::string::npos;
    if (has_some) want.kept.push_back({blob.digest, kept});
    if (partial->whole() || kept.starts_with('1')) ready_to_hash_.insert(blob.digest);
    // Who gave what was kept is not known any more.
    coming_.emplace(blob.digest, Coming{blob, std::move(partial), has_some});
  }
  offered_ = true;
  channel_.say(want);
}

void ImageIntake::begin(const BeginBlob& begin) {
  stream_ = Stream{begin.blob.digest, begin.offset, begin.bytes};
  const Coming* coming = find(begin.blob.digest);
  if (coming == nullptr) return;
  const std::uint64_t size = coming->blob.size_bytes;
  const bool fits = begin.blob.size_bytes == size && begin.offset <= size &&
                    begin.bytes <= size - begin.offset && begin.offset % kPieceBytes == 0;
  if (fits) return;
  throw misunderstood(fmt::format("{} bytes at {} come of `{}`, of which {} were offered",
                                  begin.bytes, begin.offset, begin.blob.digest, size));
}

void ImageIntake::take(std::string_view bytes) {
  if (!stream_) return;
  if (bytes.size() > stream_->left) {
    throw misunderstood(fmt::format("more comes of `{}` than was said", stream_->digest));
  }
  while (!bytes.empty()) {
    const std::uint64_t piece = stream_->offset / kPieceBytes;
    const std::uint64_t room = (piece + 1) * kPieceBytes - stream_->offset;
    const std::string_view part = bytes.substr(0, static_cast<std::size_t>(room));
    write(stream_->digest, stream_->offset, part);
    stream_->offset += part.size();
    stream_->left -= part.size();
    bytes.remove_prefix(part.size());
    if (part.size() == room || stream_->left == 0) piece_is_there(stream_->digest, piece);
  }
}

void ImageIntake::write(const std::string& digest, std::uint64_t offset, std::string_view bytes) {
  Coming* coming = find(digest);
  if (coming == nullptr || coming->partial->has(offset / kPieceBytes)) return;
  keep_error([&] { coming->partial->write(offset, as_bytes(bytes)); });
}

void ImageIntake::piece_is_there(const std::string& digest, std::uint64_t piece) {
  Coming* coming = find(digest);
  if (coming == nullptr || error_) return;
  keep_error([&] {
    coming->partial->mark(piece);
    ready_to_hash_.insert(digest);
    channel_.say(PieceArrived{digest, piece});
  });
}

void ImageIntake::fetch(const FetchPiece& piece) {
  const Coming* coming = find(piece.digest);
  const bool wanted = coming != nullptr && piece.piece < coming->partial->pieces();
  if (!wanted || coming->partial->has(piece.piece)) return;
  const std::uint64_t offset = piece.piece * kPieceBytes;
  fetches_.fetch(piece, std::min(kPieceBytes, coming->blob.size_bytes - offset));
}

void ImageIntake::fetch(const FetchRange& range) {
  const Coming* coming = find(range.digest);
  registry_.fetch(range, coming == nullptr ? 0 : coming->blob.size_bytes);
}

void ImageIntake::piece_came(const std::string& digest, std::uint64_t piece) {
  if (Coming* coming = find(digest)) coming->from_others = true;
  piece_is_there(digest, piece);
}

void ImageIntake::serve(const ServePeers& peers) {
  fetches_.set_token(peers.token);
  channel_.say(Serving{server_.open(peers.token, peers.address)});
}

void ImageIntake::forget() {
  offered_ = false;
  error_.reset();
  fetches_.forget();
  registry_.forget();
  ready_to_hash_.clear();
  coming_.clear();
}

/// Of a layer that is on its way, or a blob that the store has.
std::unique_ptr<Source> ImageIntake::source_of(const PieceRequest& request) {
  if (!served_.contains(request.digest)) return nullptr;
  const Coming* coming = find(request.digest);
  if (coming == nullptr) {
    const Digest digest = Digest::parse(request.digest);
    const std::optional<std::uint64_t> size = store_.size_of(digest);
    const bool within = size && request.offset <= *size && request.length <= *size - request.offset;
    return within ? store_.open(digest, request.offset) : nullptr;
  }
  const std::uint64_t piece = request.offset / kPieceBytes;
  const bool one = request.offset % kPieceBytes == 0 && request.length <= kPieceBytes;
  if (!one || piece >= coming->partial->pieces() || !coming->partial->has(piece)) return nullptr;
  Fd own{::fcntl(coming->partial->fd(), F_DUPFD_CLOEXEC, 0)};
  if (!own) return nullptr;
  return std::make_unique<OwnSlice>(std::move(own), request.offset, request.length);
}

void ImageIntake::add_to(std::vector<pollfd>& fds) const {
  server_.add_to(fds);
  fetches_.add_to(fds);
  registry_.add_to(fds);
}

const pollfd* ImageIntake::hear(const pollfd* seen) {
  return registry_.hear(fetches_.hear(server_.hear(seen)));
}

bool ImageIntake::advance() {
  if (error_) {
    const Error error = *std::exchange(error_, std::nullopt);
    forget();
    throw Error{error};
  }
  if (!ready_to_hash_.empty()) {
    const std::string digest = *ready_to_hash_.begin();
    Coming& coming = *find(digest);
    const bool more = coming.partial->hash_some(kHashAtOnce);
    if (!more) ready_to_hash_.erase(digest);
    if (!more && coming.partial->whole()) finish(coming);
  }
  if (!offered_ || !coming_.empty()) return false;
  offered_ = false;
  return true;
}

void ImageIntake::finish(Coming& coming) {
  const std::string digest = coming.blob.digest;
  try {
    coming.partial->commit();
  } catch (const Error& error) {
    if (error.code() != "digest-mismatch" || !coming.from_others || coming.again) throw;
    // Some node, or the registry, gave what it should not have: once more.
    coming.partial.reset();
    coming.partial = store_.partial(Digest::parse(digest), coming.blob.size_bytes);
    coming.from_others = false;
    coming.again = true;
    channel_.say(BlobSpoilt{digest});
    return;
  }
  coming_.erase(digest);
}

}  // namespace mlenv::job
