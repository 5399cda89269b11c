#pragma once
// What the key of a step is the digest of.
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/digest.hpp"
#include "builder/plan.hpp"

namespace mlenv {

/// Key material: one fact a line, so that no two lists of facts read alike.
class KeyText {
 public:
  explicit KeyText(std::string_view kind) {
    add("mlenv layer", fmt::format("{} {}", kLayerFormat, kind));
  }
  KeyText& add(std::string_view name, std::string_view value) {
    text_ += fmt::format("{} {}:{}\n", name, value.size(), value);
    return *this;
  }
  KeyText& add(std::string_view name, std::int64_t value) {
    return add(name, std::to_string(value));
  }
  Digest digest() const { return Digest::of(text_); }

 private:
  std::string text_;
};

}  // namespace mlenv
