#include "recipes/resolve/versions.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace mlenv {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::uint64_t number(std::string_view& text) {
  std::uint64_t value = 0;
  while (!text.empty() && is_digit(text.front())) {
    const auto digit = static_cast<std::uint64_t>(text.front() - '0');
    value = value > (UINT64_MAX - 9) / 10 ? UINT64_MAX - 9 : value * 10 + digit;
    text.remove_prefix(1);
  }
  return value;
}

std::string_view word(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && is_letter(text[length])) ++length;
  const std::string_view found = text.substr(0, length);
  text.remove_prefix(length);
  return found;
}

/// Where a suffix stands against the bare release, which is 0.
int phase(std::string_view name) {
  if (name == "dev") return -4;
  if (name == "a" || name == "alpha") return -3;
  if (name == "b" || name == "beta") return -2;
  if (name == "rc" || name == "c" || name == "pre" || name == "preview") return -1;
  if (name == "post" || name == "rev" || name == "r") return 1;
  return 0;
}

struct Parts {
  std::uint64_t epoch = 0;
  std::vector<std::uint64_t> release;
  std::vector<std::pair<int, std::uint64_t>> suffixes;
  std::string_view local;
};

Parts parse(std::string_view text) {
  Parts parts;
  if (text.starts_with('v')) text.remove_prefix(1);
  const std::size_t plus = text.find('+');
  if (plus != std::string_view::npos) parts.local = text.substr(plus + 1);
  text = text.substr(0, plus);
  const std::size_t bang = text.find('!');
  if (bang != std::string_view::npos) {
    parts.epoch = number(text);
    text = text.substr(std::min(text.size(), text.find('!') + 1));
  }
  while (!text.empty()) {
    if (is_digit(text.front()) && parts.suffixes.empty()) {
      parts.release.push_back(number(text));
    } else if (is_letter(text.front())) {
      const int rank = phase(word(text));
      if (!text.empty() && (text.front() == '.' || text.front() == '-' || text.front() == '_')) {
        text.remove_prefix(1);
      }
      parts.suffixes.emplace_back(rank, number(text));
    } else if (is_digit(text.front())) {
      parts.suffixes.emplace_back(1, number(text));  // `1.0-1` is a post release
    } else {
      text.remove_prefix(1);
    }
  }
  while (!parts.release.empty() && parts.release.back() == 0) parts.release.pop_back();
  return parts;
}

}  // namespace

std::strong_ordering compare_versions(std::string_view a, std::string_view b) {
  Parts left = parse(a);
  Parts right = parse(b);
  if (const auto order = left.epoch <=> right.epoch; std::is_neq(order)) return order;
  if (const auto order = left.release <=> right.release; std::is_neq(order)) return order;
  // A missing suffix stands between pre and post releases.
  const std::size_t count = std::max(left.suffixes.size(), right.suffixes.size());
  left.suffixes.resize(count);
  right.suffixes.resize(count);
  if (const auto order = left.suffixes <=> right.suffixes; std::is_neq(order)) return order;
  return left.local <=> right.local;
}

std::string version_prefix(std::string_view version, int count) {
  std::size_t end = 0;
  for (int i = 0; i < count; ++i) {
    const std::size_t dot = version.find('.', i == 0 ? 0 : end + 1);
    if (dot == std::string_view::npos) return std::string(version);
    end = dot;
  }
  return std::string(version.substr(0, end));
}

std::string_view upstream_version(std::string_view version) {
  const std::size_t colon = version.find(':');
  if (colon != std::string_view::npos) version.remove_prefix(colon + 1);
  const std::size_t dash = version.rfind('-');
  if (dash != std::string_view::npos) version = version.substr(0, dash);
  return version.substr(0, version.find('+'));
}

}  // namespace mlenv
