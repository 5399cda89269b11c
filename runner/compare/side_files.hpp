#pragma once
// Where a side has the files of the image, to put them out of memory before a cold start.
#include <string>
#include <vector>

#include "runner/compare/probes.hpp"

namespace mlenv::compare {

struct SideFiles {
  std::vector<fs::path> places;  ///< folders and files
  std::string why;               ///< they are not known, or not ours to read
};

/// Asks the engine where it has one. Of the virtual machine the disk and the kernels.
SideFiles files_on(const Bench& bench, const ActiveSide& side);

/// The same of the virtual machine alone, by the image's digest.
SideFiles machine_files(const fs::path& store, const std::string& image);

/// Folders of layers in what an engine says of an image (`{{json .GraphDriver.Data}}`).
std::vector<fs::path> layer_folders(std::string_view graph_driver);

/// Puts the files at and below `places` out of the page cache, as far as they are clean and nobody
/// has them mapped. Needs no rights but to read them.
void forget_pages(const std::vector<fs::path>& places);

}  // namespace mlenv::compare
