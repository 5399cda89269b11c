#pragma once
// Facts of an image for people: what it is built on, what it needs, what is missing, what is waste.
#include <string>
#include <vector>

#include "images/inspect/image_facts.hpp"

namespace mlenv::cli {

/// Lines without their ends.
std::vector<std::string> image_facts_text(const ImageFacts& facts);

}  // namespace mlenv::cli
