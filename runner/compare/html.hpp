#pragma once
// A comparison as one page that needs nothing else: tables that any browser shows, and charts where
// it runs scripts. Dark and light as the reader's system is; for phones and for paper, too.
#include <string>

#include "runner/compare/comparison.hpp"

namespace mlenv::compare {

std::string html_page(const Comparison& comparison);

/// `<`, `&` and quotes as entities, what could harm as an escape.
std::string html_text(std::string_view text);

}  // namespace mlenv::compare
