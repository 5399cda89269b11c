#include "recipes/source_file.hpp"

#include <array>

#include <fmt/core.h>

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 8> kSourceEndings = {".tar.gz", ".tgz", ".tar.bz2", ".tbz",
                                                            ".tar.xz", ".txz", ".tar",     ".zip"};

}  // namespace

std::string_view without_source_ending(std::string_view file) {
  for (const std::string_view ending : kSourceEndings) {
    if (file.size() > ending.size() && file.ends_with(ending)) {
      return file.substr(0, file.size() - ending.size());
    }
  }
  return {};
}

bool is_source_file(std::string_view file) { return !without_source_ending(file).empty(); }

std::string listed_source_endings() {
  std::string text;
  for (std::size_t i = 0; i < kSourceEndings.size(); ++i) {
    if (i > 0) text += i + 1 == kSourceEndings.size() ? " and " : ", ";
    text += fmt::format("`{}`", kSourceEndings.at(i));
  }
  return text;
}

}  // namespace mlenv
