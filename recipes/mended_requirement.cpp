#include "recipes/mended_requirement.hpp"

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

/// In this order, in the part before the marker.
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

bool can_be_read(const std::string& text) {
  return std::holds_alternative<Requirement>(parse_requirement(text));
}

}  // namespace

std::string mended_requirement(const std::string& text) {
  if (can_be_read(text)) return text;
  const std::size_t marker = std::min(text.find(';'), text.size());
  std::string wanted(trim(std::string_view(text).substr(0, marker)));
  const std::string rest = text.substr(marker);
  for (const Mend& one : kMends) {
    wanted = std::regex_replace(wanted, std::regex(one.wrong), one.right);
    const std::string mended = rest.empty() ? wanted : wanted + " " + rest;
    if (can_be_read(mended)) return mended;
  }
  return text;
}

}  // namespace mlenv
