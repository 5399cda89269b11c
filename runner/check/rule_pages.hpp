#pragma once
// The rules' documentation, docs/rules/*.md, as it was when mlenv was built.
#include <string_view>

namespace mlenv {

/// Markdown; empty for an unknown id.
std::string_view rule_page(std::string_view id);

}  // namespace mlenv
