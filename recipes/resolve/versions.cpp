#include "recipes/resolve/versions.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

std::uint64_t take_number(std::string_view& text) {
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

constexpr int kDevelopment = -4;
constexpr int kPost = 1;

/// Where a suffix stands against the bare release, which is 0.
int phase(std::string_view name) {
  if (name == "dev") return kDevelopment;
  if (name == "a" || name == "alpha") return -3;
  if (name == "b" || name == "beta") return -2;
  if (name == "rc" || name == "c" || name == "pre" || name == "preview") return -1;
  if (name == "post" || name == "rev" || name == "r") return kPost;
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
    parts.epoch = take_number(text);
    text = text.substr(std::min(text.size(), text.find('!') + 1));
  }
  while (!text.empty()) {
    if (is_digit(text.front()) && parts.suffixes.empty()) {
      parts.release.push_back(take_number(text));
    } else if (is_letter(text.front())) {
      const int rank = phase(word(text));
      if (!text.empty() && (text.front() == '.' || text.front() == '-' || text.front() == '_')) {
        text.remove_prefix(1);
      }
      parts.suffixes.emplace_back(rank, take_number(text));
    } else if (is_digit(text.front())) {
      parts.suffixes.emplace_back(1, take_number(text));  // `1.0-1` is a post release
    } else {
      text.remove_prefix(1);
    }
  }
  while (!parts.release.empty() && parts.release.back() == 0) parts.release.pop_back();
  return parts;
}

/// Part by part: numbers as numbers, and above words (PEP 440, "Local version identifiers").
std::strong_ordering compare_locals(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    std::string_view left = a.substr(0, a.find_first_of(".-_"));
    std::string_view right = b.substr(0, b.find_first_of(".-_"));
    a.remove_prefix(std::min(a.size(), left.size() + 1));
    b.remove_prefix(std::min(b.size(), right.size() + 1));
    const bool numbers = all_digits(left) && all_digits(right);
    if (!numbers && all_digits(left) != all_digits(right)) {
      return all_digits(left) ? std::strong_ordering::greater : std::strong_ordering::less;
    }
    const auto order = numbers ? take_number(left) <=> take_number(right) : left <=> right;
    if (std::is_neq(order)) return order;
  }
  return a.size() <=> b.size();
}

std::string_view without_local(std::string_view version) {
  return version.substr(0, version.find('+'));
}

/// Its epoch and release numbers alone: `1!2.0` of `1!2.0rc1.post2+local`.
bool same_release(const Parts& a, const Parts& b) {
  return a.epoch == b.epoch && a.release == b.release;
}

bool is_phase(const Parts& parts, int least, int most) {
  return std::any_of(parts.suffixes.begin(), parts.suffixes.end(), [&](const auto& suffix) {
    return suffix.first >= least && suffix.first <= most;
  });
}
bool is_early(const Parts& parts) { return is_phase(parts, kDevelopment, -1); }
bool is_post(const Parts& parts) { return is_phase(parts, kPost, kPost); }

/// `1.2` of `1.2.*`: the release begins with these numbers.
bool has_prefix(std::string_view version, std::string_view prefix) {
  Parts whole = parse(version);
  const Parts wanted = parse(prefix);
  const auto count = static_cast<std::size_t>(std::count(prefix.begin(), prefix.end(), '.')) + 1;
  std::vector<std::uint64_t> numbers = wanted.release;
  numbers.resize(count);
  whole.release.resize(count);
  return whole.epoch == wanted.epoch && whole.release == numbers;
}

bool equal(std::string_view version, std::string_view wanted) {
  if (wanted.ends_with(".*")) return has_prefix(version, wanted.substr(0, wanted.size() - 2));
  const bool local = wanted.find('+') != std::string_view::npos;
  return std::is_eq(compare_versions(local ? version : without_local(version), wanted));
}

/// `~=2.2`: at least 2.2, and still a 2.
bool compatible(std::string_view version, std::string_view wanted) {
  if (std::is_lt(compare_versions(without_local(version), wanted))) return false;
  std::size_t end = 0;
  while (end < wanted.size() && (is_digit(wanted[end]) || wanted[end] == '.' || wanted[end] == '!'))
    ++end;
  std::string_view release = wanted.substr(0, end);
  while (release.ends_with('.')) release.remove_suffix(1);
  return has_prefix(version, release.substr(0, release.rfind('.')));
}

bool less(std::string_view version, std::string_view wanted) {
  if (!std::is_lt(compare_versions(without_local(version), wanted))) return false;
  const Parts found = parse(version);
  const Parts bound = parse(wanted);
  return is_early(bound) || !is_early(found) || !same_release(found, bound);
}

bool greater(std::string_view version, std::string_view wanted) {
  if (!std::is_gt(compare_versions(without_local(version), wanted))) return false;
  const Parts found = parse(version);
  const Parts bound = parse(wanted);
  return is_post(bound) || !is_post(found) || !same_release(found, bound);
}

bool allows(std::string_view sign, std::string_view wanted, std::string_view version) {
  if (sign == "===") return version == wanted;
  if (sign == "==") return equal(version, wanted);
  if (sign == "!=") return !equal(version, wanted);
  if (sign == "~=") return compatible(version, wanted);
  if (sign == "<") return less(version, wanted);
  if (sign == ">") return greater(version, wanted);
  const std::strong_ordering order = compare_versions(without_local(version), wanted);
  return sign == "<=" ? std::is_lteq(order) : std::is_gteq(order);
}

}  // namespace

bool is_older(std::string_view version, std::string_view than) {
  return std::is_lt(compare_versions(version, than));
}

std::string major_of(std::string_view version) {
  return std::string(version.substr(0, version.find('.')));
}

bool version_satisfies(std::string_view version, std::string_view specifiers) {
  while (!specifiers.empty()) {
    const std::size_t comma = specifiers.find(',');
    const std::string_view one = trim(specifiers.substr(0, comma));
    const std::size_t sign = std::min(one.find_first_not_of("=<>!~"), one.size());
    if (!allows(one.substr(0, sign), trim(one.substr(sign)), version)) return false;
    specifiers.remove_prefix(comma == std::string_view::npos ? specifiers.size() : comma + 1);
  }
  return true;
}

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
  return compare_locals(left.local, right.local);
}

std::string unescaped_version(std::string_view version) {
  const std::size_t plus = version.find('+');
  std::string text(version.substr(0, plus));
  const std::size_t last = text.find_last_of("_-");
  if (last != std::string::npos && all_digits(std::string_view(text).substr(last + 1))) {
    text.replace(last, 1, ".post");
  }
  if (plus != std::string_view::npos) text += version.substr(plus);
  for (char& c : text) {
    c = c == '_' || c == '-' ? '.' : to_lower(c);
  }
  return text;
}

bool is_same_version(std::string_view a, std::string_view b) {
  return a == b || std::is_eq(compare_versions(unescaped_version(a), unescaped_version(b)));
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
