#include "recipes/mended_requirement.hpp"

#include <algorithm>
#include <array>
#include <regex>

#include "recipes/requirement.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

struct Mend {
  const char* wrong;
  const char* right;
};

/// In this order, in what stands between name and marker.
constexpr std::array kMends = {
    Mend{R"(["'])", ""},                            // >="2021"
    Mend{R"((\d|\*)\s*([<>=!~]=|[<>]))", "$1,$2"},  // >=1<2
    Mend{R"((\d)\.(?=\s*(,|\)|$)))", "$1"},         // >=3.
    Mend{R"(([<>]=?\s*\d+(?:\.\d+)*)\.\*)", "$1"},  // >=1.8.*
    Mend{R"(~=\s*(\d+(?:\.\d+)*)\.\*)", "==$1.*"},  // ~=1.8.*
    Mend{R"(([=!]=\s*\d+(?:\.\d+)*)\*)", "$1.*"},   // ==1.8*
    Mend{R"(!=~\s*(\d+(?:\.\d+)*))", "!=$1.*"},     // !=~1.8
    Mend{R"(([<>]=?)\s*dev)", "$010.dev0"},         // >dev
    Mend{R"(,\s*(?=\)|$))", ""},                    // >=1,
};

/// Name, extras, and the bracket that versions may stand in.
std::size_t begin_of_versions(const std::string& text) {
  static const std::regex name(R"(^\s*[A-Za-z0-9._-]*[A-Za-z0-9]\s*(\[[^\]]*\])?\s*\(?)");
  std::smatch found;
  return std::regex_search(text, found, name) ? found[0].str().size() : std::string::npos;
}

}  // namespace

std::string mended_requirement(const std::string& text) {
  constexpr std::size_t kLongest = 1000;  // expressions take the stack for what they match
  if (text.size() > kLongest) return text;
  if (std::holds_alternative<Requirement>(parse_requirement(text))) return text;
  const std::size_t marker = std::min(text.find(';'), text.size());
  const std::size_t begin = begin_of_versions(text);
  if (begin >= marker || text[begin] == '@') return text;
  std::string versions(trim(std::string_view(text).substr(begin, marker - begin)));
  for (const Mend& one : kMends) {
    versions = std::regex_replace(versions, std::regex(one.wrong), one.right);
  }
  std::string mended = text.substr(0, begin) + versions;
  if (marker < text.size()) mended += " " + text.substr(marker);
  return std::holds_alternative<Requirement>(parse_requirement(mended)) ? mended : text;
}

}  // namespace mlenv
