#include "images/image_json.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/json_depth.hpp"
#include "base/size_limits.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kLongest = std::max(size_limit::kManifest, size_limit::kImageConfig);

}  // namespace

nlohmann::json parse_image_json(std::string_view text, std::string_view what) {
  if (text.size() > kLongest) {
    throw failure("too-large", "the {} has {} bytes; mlenv reads {} of one", what, text.size(),
                  kLongest);
  }
  if (const std::size_t values = json_values(text); values > size_limit::kImageValues) {
    throw failure("too-large", "the {} has {} values; mlenv reads {} of one", what, values,
                  size_limit::kImageValues);
  }
  return parse_json(text, what);
}

nlohmann::json try_image_json(std::string_view text) {
  if (text.size() > kLongest || json_values(text) > size_limit::kImageValues || is_too_deep(text)) {
    return nlohmann::json::value_t::discarded;
  }
  return nlohmann::json::parse(text, nullptr, false);
}

Descriptor read_descriptor(const nlohmann::json& value) {
  return {value.at("mediaType").get<std::string>(),
          Digest::parse(value.at("digest").get_ref<const std::string&>()),
          value.at("size").get<std::uint64_t>()};
}

}  // namespace mlenv
