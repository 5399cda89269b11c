#include "builder/chunked_gzip.hpp"

#include <algorithm>

#include "base/deflate.hpp"
#include "base/files.hpp"

namespace mlenv {
namespace {
constexpr std::size_t kChunksInFlight = 16;
}  // namespace

void ChunkedGzip::write(ByteView data) {
  tar_hash_.write(data);
  while (!data.empty()) {
    Bytes& chunk = chunks_.back();
    const std::size_t count = std::min(data.size(), kChunkBytes - chunk.size());
    chunk.insert(chunk.end(), data.begin(), data.begin() + static_cast<std::ptrdiff_t>(count));
    data = data.subspan(count);
    if (chunk.size() < kChunkBytes) continue;
    if (chunks_.size() == kChunksInFlight) compress();
    chunks_.emplace_back();
  }
}

Layer ChunkedGzip::finish(std::string title) {
  if (chunks_.back().empty()) chunks_.pop_back();
  compress();
  const std::uint64_t size = blob_hash_.size_bytes();
  const std::uint64_t tar_bytes = tar_hash_.size_bytes();
  const Digest digest = blob_hash_.finish();
  return {
      {std::string(kLayerGzipType), digest, size}, tar_hash_.finish(), tar_bytes, std::move(title)};
}

void ChunkedGzip::compress() {
  std::vector<Bytes> members(chunks_.size());
  pool_.for_each(chunks_.size(), [&](std::size_t i) { members[i] = gzip_chunk(chunks_[i]); });
  for (const Bytes& member : members) {
    blob_hash_.write(member);
    write_all(fd_, member);
  }
  chunks_.clear();
}

}  // namespace mlenv
