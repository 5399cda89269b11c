#include "images/inspect/fatbin.hpp"

#include <algorithm>
#include <cstring>

namespace mlenv {
namespace {

constexpr std::uint64_t kFatbinMagic = 0xBA55ED50;
constexpr std::size_t kMagicBytes = 4;
constexpr std::size_t kContainerHeader = 16;  // magic, version, header size, size
constexpr std::size_t kEntryHeader = 64;
constexpr std::uint64_t kPtx = 1;
constexpr std::uint64_t kMachineCode = 2;
// Flags of an entry.
constexpr std::uint64_t kArchitectureSpecific = 0x100000;
constexpr std::uint64_t kFamilySpecific = 0x200000;

constexpr std::size_t kMostRuns = 16384;

/// Little-endian, at an offset of a header that is there.
std::uint64_t field(ByteView header, std::size_t offset, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) {
    value = value << 8U | std::to_integer<std::uint64_t>(header[offset + i]);
  }
  return value;
}

/// Where the magic number begins; the size of `bytes` where it does not. Looks for its last byte,
/// which is the rarest one in code and text.
std::size_t find_magic(ByteView bytes) {
  constexpr std::size_t kBefore = kMagicBytes - 1;
  for (std::size_t at = kBefore; at < bytes.size(); ++at) {
    const void* found = std::memchr(&bytes[at], kFatbinMagic >> 24U, bytes.size() - at);
    if (found == nullptr) return bytes.size();
    at = static_cast<std::size_t>(static_cast<const std::byte*>(found) - bytes.data());
    if (field(bytes, at - kBefore, kMagicBytes) == kFatbinMagic) return at - kBefore;
  }
  return bytes.size();
}

char variant_of(std::uint64_t flags) {
  if ((flags & kArchitectureSpecific) != 0) return 'a';
  return (flags & kFamilySpecific) != 0 ? 'f' : '\0';
}

}  // namespace

void FatbinScanner::begin_container(std::uint64_t bytes) {
  left_ = bytes;
  if (runs_.size() > 1 && runs_.back().code == runs_[runs_.size() - 2].code) {
    const std::uint64_t end = runs_.back().end;
    runs_.pop_back();
    runs_.back().end = end;
  }
  if (runs_.size() < kMostRuns) runs_.push_back({position_, position_, {}});
  runs_.back().end = position_ + kContainerHeader;
}

std::size_t FatbinScanner::search(ByteView rest) {
  const std::size_t at = find_magic(rest);
  if (at == rest.size()) return rest.size() < kMagicBytes ? 0 : at - (kMagicBytes - 1);
  if (at > 0) return at;
  if (rest.size() < kContainerHeader) return 0;
  const bool is_header = field(rest, 4, 2) == 1 && field(rest, 6, 2) == kContainerHeader;
  if (!is_header) return kMagicBytes;
  begin_container(field(rest, 8, 8));
  return kContainerHeader;
}

std::size_t FatbinScanner::entry(ByteView rest) {
  if (left_ < kEntryHeader) {
    left_ = 0;  // padding; the next container is searched for
    return search(rest);
  }
  if (rest.size() < kEntryHeader) return 0;
  const std::uint64_t kind = field(rest, 0, 2);
  const std::uint64_t header = field(rest, 4, 4);
  const std::uint64_t size = field(rest, 8, 8);
  const std::uint64_t architecture = field(rest, 28, 4);
  constexpr std::uint64_t kLargestHeader = 4096;
  if (header < kEntryHeader || header > kLargestHeader || left_ < header || left_ - header < size) {
    left_ = 0;
    return 1;
  }
  if ((kind == kPtx || kind == kMachineCode) && architecture >= 10 && architecture < 1000) {
    DeviceCode code;
    code.ptx = kind == kPtx;
    code.major = static_cast<int>(architecture / 10);
    code.minor = static_cast<int>(architecture % 10);
    code.variant = variant_of(field(rest, 40, 8));
    runs_.back().code.insert(code);
  }
  left_ -= header + size;
  skip_ = header + size - kEntryHeader;
  runs_.back().end = position_ + kEntryHeader;
  return kEntryHeader;
}

std::size_t FatbinScanner::step(ByteView rest) {
  if (skip_ > 0) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(skip_, rest.size()));
    skip_ -= count;
    if (skip_ == 0) runs_.back().end = position_ + count;
    return count;
  }
  return left_ > 0 ? entry(rest) : search(rest);
}

void FatbinScanner::write(ByteView data) {
  // What was left over is short: the rest of it is in `data`, or in the writes that follow.
  if (!pending_.empty()) {
    pending_.insert(pending_.end(), data.begin(), data.end());
    data = pending_;
  }
  ByteView rest = data;
  while (!rest.empty()) {
    const std::size_t used = step(rest);
    if (used == 0) break;
    rest = rest.subspan(used);
    position_ += used;
  }
  Bytes kept(rest.begin(), rest.end());
  pending_ = std::move(kept);
}

void FatbinScanner::pass_over(std::uint64_t bytes) {
  const std::uint64_t count = std::min(bytes, unneeded());
  skip_ -= count;
  position_ += count;
  if (count > 0) runs_.back().end = position_;
}

std::set<DeviceCode> FatbinScanner::found() const {
  std::set<DeviceCode> all;
  for (const FatbinRun& run : runs_) all.insert(run.code.begin(), run.code.end());
  return all;
}

}  // namespace mlenv
