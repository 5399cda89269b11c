#include "recipes/text.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace mlenv {
namespace {

constexpr std::size_t kMostPathBytes = 4096;  // PATH_MAX of Linux

bool is_clean_path(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '/');
  return std::none_of(parts.begin(), parts.end(), [](std::string_view part) {
    return part.empty() || part == "." || part == "..";
  });
}

bool is_image_component(std::string_view part) {
  bool after_separator = true;  // the start is like a separator: a letter or digit must follow
  for (std::size_t i = 0; i < part.size(); ++i) {
    const char c = part[i];
    if (is_lower(c) || is_digit(c)) {
      after_separator = false;
      continue;
    }
    if (after_separator) return false;
    if (c == '-') {
      while (i + 1 < part.size() && part[i + 1] == '-') ++i;
    } else if (c == '_') {
      if (i + 1 < part.size() && part[i + 1] == '_') ++i;
    } else if (c != '.') {
      return false;
    }
    after_separator = true;
  }
  return !after_separator;
}

}  // namespace

bool has_control(std::string_view text, std::string_view allowed) {
  return std::any_of(text.begin(), text.end(), [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 || byte == 0x7F) && allowed.find(c) == std::string_view::npos;
  });
}

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
  const std::size_t gap = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (gap > limit) return limit + 1;
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    if (*std::min_element(row.begin(), row.end()) > limit) return limit + 1;
    std::swap(before, above);
    std::swap(above, row);
  }
  return std::min(above[b.size()], limit + 1);
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr std::size_t kLimit = 2;
  if (word.size() > 64) return {};
  std::string_view best;
  std::size_t best_distance = kLimit + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate, kLimit);
    if (2 * distance > std::min(word.size(), candidate.size())) continue;
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word) {
  return word.empty() ? std::string{} : fmt::format("did you mean `{}`?", word);
}

std::string suggestion(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view near = nearest(word, candidates);
  return near.empty() ? std::string{} : "; " + did_you_mean(near);
}

std::string counted(std::size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::optional<MergeMarker> merge_marker(std::string_view text) {
  constexpr std::array<std::string_view, 4> kMarkers = {"<<<<<<<", "|||||||", "=======", ">>>>>>>"};
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const std::string_view whole = text.substr(0, end);
    for (const std::string_view marker : kMarkers) {
      const bool alone = whole.size() == marker.size() || trim(whole.substr(0, 8)) == marker;
      if (whole.starts_with(marker) && alone) return MergeMarker{line, whole.substr(0, 7)};
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return std::nullopt;
}

std::string listed(const std::vector<std::string>& items, std::size_t most) {
  if (items.size() <= most) return join(items, ", ");
  const auto end = items.begin() + static_cast<std::ptrdiff_t>(most);
  return fmt::format("{} and {} more", join({items.begin(), end}, ", "), items.size() - most);
}

std::string join(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += between;
    text += part;
  }
  return text;
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

bool says(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

bool is_among(std::span<const std::string_view> all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

bool is_image_name(std::string_view text) {
  if (text.empty() || text.size() > 255) return false;
  const std::vector<std::string_view> parts = split(text, '/');
  return std::all_of(parts.begin(), parts.end(), is_image_component);
}

bool is_env_name(std::string_view text) {
  if (text.empty() || is_digit(text.front())) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '_'; });
}

bool is_debian_name(std::string_view text) {
  if (text.size() < 2 || !(is_lower(text.front()) || is_digit(text.front()))) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_lower(c) || is_digit(c) || c == '+' || c == '-' || c == '.';
  });
}

bool is_debian_version(std::string_view text) {
  constexpr std::string_view kOthers = ".+-~:";
  return !text.empty() && is_digit(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return is_alphanumeric(c) || kOthers.find(c) != std::string_view::npos;
         });
}

bool is_wheel_name(std::string_view text) {
  return !text.empty() && text.front() != '-' && text.back() != '-' &&
         normalise_wheel_name(text) == text && std::all_of(text.begin(), text.end(), [](char c) {
           return is_lower(c) || is_digit(c) || c == '-';
         });
}

std::string normalise_wheel_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    if (c == '-' || c == '_' || c == '.') {
      if (name.empty() || name.back() != '-') name += '-';
    } else {
      name += to_lower(c);
    }
  }
  return name;
}

bool is_clean_absolute_path(std::string_view text) {
  if (!text.starts_with('/') || text.size() > kMostPathBytes || has_control(text)) return false;
  return text == "/" || is_clean_path(text.substr(1));
}

bool is_clean_relative_path(std::string_view text) {
  return text.size() <= kMostPathBytes && !has_control(text) && is_clean_path(text);
}

}  // namespace mlenv
