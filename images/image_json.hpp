#pragma once
// JSON of images (manifests, indexes, configs), which comes from anybody. For images/*.cpp only.
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "images/oci.hpp"

namespace mlenv {

/// `parse_json` of a text that is no larger than such may be (base/size_limits.hpp), with no more
/// values than that. Throws `too-large` and `bad-json`; `what` names it in messages.
nlohmann::json parse_image_json(std::string_view text, std::string_view what);

/// The same; what cannot be read is a discarded value (nlohmann-json's `is_discarded`).
nlohmann::json try_image_json(std::string_view text);

/// Throws as nlohmann-json does, and `bad-digest`.
Descriptor read_descriptor(const nlohmann::json& value);

}  // namespace mlenv
