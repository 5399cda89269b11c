// What no builder of such an image can do without, and nothing more: SHA-256 of every wheel,
// inflating every member, SHA-256 of what comes out; on all processors, nothing written.
//   floor WHEEL…
// Wheels are best in the page cache beforehand. Prints bytes and seconds.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/inflate.hpp"
#include "base/pool.hpp"
#include "base/zip.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20U;

struct Work {
  int wheel = 0;                      ///< descriptor
  std::uint64_t size_bytes = 0;       ///< what it costs, for the order
  const ZipMember* member = nullptr;  ///< nullptr: the wheel as a whole
};

void hash_slice(int file, std::uint64_t offset, std::uint64_t length) {
  thread_local Bytes buffer(kChunk);
  SliceSource source(file, offset, length);
  Sha256 hash;
  while (const std::size_t got = source.read(buffer)) hash.write(ByteView(buffer).first(got));
  hash.finish();
}

void hash_small_member(int file, const ZipMember& member) {
  thread_local Bytes raw;
  thread_local Bytes out;
  raw.resize(member.compressed_bytes);
  out.resize(member.size_bytes);
  SliceSource source(file, member.offset, member.compressed_bytes);
  for (std::size_t got = 0; got < raw.size();) got += source.read(ByteSpan(raw).subspan(got));
  inflate_whole(raw, out);
  Sha256 hash;
  hash.write(out);
  hash.finish();
}

void carry_out(const Work& work) {
  if (work.member == nullptr) return hash_slice(work.wheel, 0, work.size_bytes);
  const ZipMember& member = *work.member;
  if (member.method == ZipMember::Method::stored) {
    return hash_slice(work.wheel, member.offset, member.size_bytes);
  }
  if (member.size_bytes <= kWholeInflateLimit) return hash_small_member(work.wheel, member);
  SliceSource source(work.wheel, member.offset, member.compressed_bytes);
  Sha256 hash;
  inflate_stream(source, hash, member.size_bytes);
  hash.finish();
}

int run(const std::vector<std::string>& paths) {
  std::vector<Fd> files;
  std::vector<std::vector<ZipMember>> members;
  std::vector<Work> todo;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string& path : paths) {
    files.push_back(open_file(path));
    members.push_back(read_zip_directory(files.back().get()));
    todo.push_back({files.back().get(), file_size(path), nullptr});
    bytes_in += todo.back().size_bytes;
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const ZipMember& member : members[i]) {
      if (member.is_folder()) continue;
      todo.push_back({files[i].get(), member.size_bytes * 3, &member});
      bytes_out += member.size_bytes;
    }
  }
  std::stable_sort(todo.begin(), todo.end(),
                   [](const Work& a, const Work& b) { return a.size_bytes > b.size_bytes; });
  Pool pool;
  pool.for_each(todo.size(), [&](std::size_t i) { carry_out(todo[i]); });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print("{} wheels, {:.2f} GB, {:.2f} GB out, {} threads: {:.2f} s\n", paths.size(),
             static_cast<double>(bytes_in) / 1e9, static_cast<double>(bytes_out) / 1e9, pool.size(),
             took.count());
  return 0;
}

}  // namespace
}  // namespace mlenv

int main(int argc, char** argv) {
  try {
    return mlenv::run({argv + 1, argv + argc});
  } catch (const mlenv::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
