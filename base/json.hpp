#pragma once
// JSON whose bytes are hashed is written by `canonical` alone: sorted keys, no spaces, UTF-8 as it
// is, no trailing newline.
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace mlenv {

std::string canonical(const nlohmann::json& value);

/// Throws `bad-json` with `what` (a file, a URL) and where in it.
nlohmann::json parse_json(std::string_view text, std::string_view what);

/// As CBOR.
std::string cbor_bytes(const nlohmann::json& value);

/// A member that is a text; empty: there is none.
std::string text_of(const nlohmann::json& object, const char* name);

/// null for an empty one.
nlohmann::json text_or_null(const std::string& text);

}  // namespace mlenv
