#include "runner/job/blob_sender.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "images/partial_blob.hpp"

namespace mlenv::job {
namespace {

constexpr std::size_t kSentPiece = std::size_t{256} << 10;

}  // namespace

void BlobSender::add(const Store& store, const Want& want) {
  for (const OfferedBlob& blob : want.blobs) {
    waiting_.push_back({&store, want.during, blob, 0, blob.size_bytes});
    all_ += blob.size_bytes;
  }
}

void BlobSender::add_piece(const Store& store, const std::string& during, const OfferedBlob& blob,
                           std::size_t piece) {
  const std::uint64_t offset = piece * kPieceBytes;
  const std::uint64_t bytes = std::min(kPieceBytes, blob.size_bytes - offset);
  waiting_.push_back({&store, during, blob, offset, bytes});
  all_ += bytes;
}

void BlobSender::fill(Channel& channel, const FailedEvent& failed) {
  while (busy() && channel.has_room()) {
    try {
      send_piece(channel);
    } catch (const Error& error) {
      const std::string during = waiting_.front().during;
      forget(during);
      channel.say(GiveUp{during});
      failed(during, error);
    }
  }
}

void BlobSender::send_piece(Channel& channel) {
  const Transfer& first = waiting_.front();
  if (!source_) {
    source_ = first.store->open(Digest::parse(first.blob.digest), first.offset);
    left_ = first.bytes;
    channel.say(BeginBlob{first.during, first.blob, first.offset, first.bytes});
  }
  BlobBytes piece;
  piece.bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kSentPiece, left_)));
  if (left_ > 0) {
    const std::size_t count =
        source_->read(std::as_writable_bytes(std::span(piece.bytes.data(), piece.bytes.size())));
    if (count == 0) {
      throw failure("damaged", "the blob `{}` in the store is damaged", first.blob.digest)
          .because(fmt::format("{} bytes of it are not there", left_))
          .hint("run `mlenv store verify --repair`, then build or pull again");
    }
    piece.bytes.resize(count);
    channel.say(piece);
    left_ -= count;
    sent_ += count;
  }
  if (left_ > 0) return;
  source_.reset();
  waiting_.pop_front();
}

void BlobSender::forget(const std::string& during) {
  if (busy() && waiting_.front().during == during) source_.reset();
  std::erase_if(waiting_, [&](const Transfer& one) { return one.during == during; });
}

}  // namespace mlenv::job
