#pragma once
// The end of an output, however long that is.
#include <string>
#include <string_view>
#include <utility>

namespace mlenv {

class LastBytes {
 public:
  explicit LastBytes(std::size_t limit) : limit_(limit) {}
  /// Holds twice the limit at most.
  void append(std::string_view part) {
    text_.append(part);
    if (text_.size() > 2 * limit_) text_.erase(0, text_.size() - limit_);
  }
  /// The last `limit` bytes of all; leaves it empty.
  std::string release() {
    if (text_.size() > limit_) text_.erase(0, text_.size() - limit_);
    return std::move(text_);
  }

 private:
  std::size_t limit_;
  std::string text_;
};

}  // namespace mlenv
