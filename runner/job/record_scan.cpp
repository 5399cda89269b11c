#include "runner/job/record_scan.hpp"

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"

namespace mlenv::job {
namespace {

constexpr std::size_t kDeepestRecord = 16;
constexpr std::size_t kMostItems = 100'000;

/// RFC 8949, section 3.1.
enum class Major : unsigned { number, negative, bytes, text, list, map, tag, simple };

struct Head {
  Major major = Major::simple;
  std::uint64_t value = 0;
};

class RecordScan {
 public:
  explicit RecordScan(std::string_view bytes) : rest_(bytes) {}

  bool is_plain() {
    left_ = {1};
    for (std::size_t items = 0; !left_.empty();) {
      if (left_.back() == 0) {
        left_.pop_back();
        continue;
      }
      --left_.back();
      if (++items > kMostItems || !take_item()) return false;
    }
    return rest_.empty();
  }

 private:
  bool take_item() {
    Head head;
    if (!take_head(head)) return false;
    switch (head.major) {
      case Major::bytes:
      case Major::text:
        if (head.value > rest_.size()) return false;
        rest_.remove_prefix(head.value);
        return true;
      case Major::list:
        return enter(head.value, 1);
      case Major::map:
        return enter(head.value, 2);
      case Major::tag:
        return false;
      default:
        return true;
    }
  }

  bool take_head(Head& head) {
    constexpr unsigned kInfoBits = 5;
    constexpr unsigned kInfo = 31;
    constexpr unsigned kFirstLong = 24;
    constexpr unsigned kLastLong =
        27;  // beyond: of a length that is not said, which we never write
    if (rest_.empty()) return false;
    const unsigned first = take_byte();
    head.major = static_cast<Major>(first >> kInfoBits);
    head.value = first & kInfo;
    if (head.value < kFirstLong) return true;
    if (head.value > kLastLong) return false;
    const std::size_t bytes = std::size_t{1} << (head.value - kFirstLong);
    if (rest_.size() < bytes) return false;
    head.value = 0;
    for (std::size_t i = 0; i < bytes; ++i) head.value = (head.value << kByteBits) | take_byte();
    return true;
  }

  unsigned take_byte() {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }

  /// Each item takes a byte at least.
  bool enter(std::uint64_t count, std::uint64_t each) {
    if (count > rest_.size() / each || left_.size() > kDeepestRecord) return false;
    left_.push_back(count * each);
    return true;
  }

  std::string_view rest_;
  std::vector<std::uint64_t> left_;  ///< items to come, of each that is open
};

}  // namespace

bool is_plain_record(std::string_view bytes) { return RecordScan{bytes}.is_plain(); }

}  // namespace mlenv::job
