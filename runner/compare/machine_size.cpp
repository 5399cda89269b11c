#include "runner/compare/machine_size.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <chrono>

#include "base/deflate.hpp"
#include "base/error.hpp"
#include "base/pool.hpp"
#include "base/tree_walk.hpp"
#include "runner/compare/side_files.hpp"

namespace mlenv::compare {
namespace {

using std::chrono::steady_clock;

/// Places of chunks that hold anything.
std::vector<off_t> chunks_of(int file) {
  constexpr auto kChunk = static_cast<off_t>(kChunkBytes);
  std::vector<off_t> chunks;
  off_t data = ::lseek(file, 0, SEEK_DATA);
  while (data >= 0) {
    const off_t hole = ::lseek(file, data, SEEK_HOLE);
    for (off_t at = data / kChunk * kChunk; at < hole; at += kChunk) {
      if (chunks.empty() || at > chunks.back()) chunks.push_back(at);
    }
    data = ::lseek(file, hole, SEEK_DATA);
  }
  return chunks;
}

std::uint64_t packed_bytes(int file, off_t at) {
  Bytes chunk(kChunkBytes);
  const ssize_t count = ::pread(file, chunk.data(), chunk.size(), at);
  if (count < 0) throw os_error(errno, "cannot read the virtual machine's disk");
  return gzip_chunk(ByteView(chunk).first(static_cast<std::size_t>(count))).size();
}

std::vector<fs::path> files_below(const std::vector<fs::path>& places) {
  std::vector<fs::path> files;
  for (const fs::path& place : places) {
    if (!fs::is_directory(place)) {
      files.push_back(place);
      continue;
    }
    TreeWalk walk;
    walk.visit = [&](const TreeEntry& entry) {
      if (S_ISREG(entry.status.st_mode)) files.push_back(place / entry.path);
      return true;
    };
    walk_tree(place, walk);
  }
  return files;
}

}  // namespace

MachineSize machine_size(const Store& store, const Image& image, double seconds,
                         const std::function<bool()>& stopped) {
  const SideFiles of = machine_files(store.root(), image.digest().str());
  if (!of.why.empty()) return {0, of.why};
  const steady_clock::time_point begun = steady_clock::now();
  std::atomic<std::uint64_t> bytes = 0;
  std::atomic<bool> late = false;
  Pool pool;
  for (const fs::path& path : files_below(of.places)) {
    const Fd file = open_file(path);
    const std::vector<off_t> chunks = chunks_of(file.get());
    pool.for_each(chunks.size(), [&](std::size_t i) {
      if (std::chrono::duration<double>(steady_clock::now() - begun).count() > seconds) late = true;
      if (stopped()) late = true;
      if (!late) bytes += packed_bytes(file.get(), chunks[i]);
    });
  }
  if (stopped()) return {0, "interrupted"};
  if (late) {
    return {0, fmt::format("compressing its disk takes longer than {:.0f} s here", seconds)};
  }
  return {bytes, ""};
}

}  // namespace mlenv::compare
