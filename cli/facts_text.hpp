#pragma once
// Facts for people: a group a paragraph, what is unknown at its end with the reason.
#include <string>
#include <vector>

#include "runner/facts/facts.hpp"

namespace mlenv::cli {

/// Lines without their ends. `host` as read on the machine that it is about.
std::vector<std::string> facts_text(const Facts& host);

}  // namespace mlenv::cli
