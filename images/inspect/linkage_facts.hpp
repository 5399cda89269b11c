#pragma once
// What all files of an image come to: libraries and versions that are missing, and those that the C
// and C++ libraries must have.
#include <string>

#include "images/inspect/image_facts.hpp"
#include "images/inspect/image_tree.hpp"

namespace mlenv {

/// Fills `glibc`, `libstdcxx`, `least_kernel`, `missing_libraries` and `missing_versions` from
/// files for `machine` (ELF's number). Separate debugging information is left out.
void take_linkage(const ImageTree& tree, std::uint64_t machine, const std::string& library_path,
                  const char* source, ImageFacts& facts);

}  // namespace mlenv
