#pragma once
// What the parts of Inputs share: places as URLs, and what is said of one that failed.
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"

namespace mlenv {

inline constexpr std::string_view kFileScheme = "file://";

inline bool is_local(std::string_view url) { return url.starts_with(kFileScheme); }
inline fs::path local_path(std::string_view url) { return url.substr(kFileScheme.size()); }

/// Nothing where it is empty.
inline std::vector<std::string> some(const std::string& url) {
  if (url.empty()) return {};
  return {url};
}

/// Nobody said that it is not there.
bool is_no_answer(const Error& error);
/// `https://host:443`, without a login.
std::string origin_of(std::string_view url);
/// An error about `url` on one line; the same for all files where its host does not answer.
std::string told(const Error& error, const std::string& url);
/// Once each.
void add_reason(std::string& reasons, const std::string& reason);

}  // namespace mlenv
