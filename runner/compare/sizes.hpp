#pragma once
// Rows that follow from digests and sizes of layers, and one measured copy.
#include <functional>
#include <optional>

#include "base/progress.hpp"
#include "images/store.hpp"
#include "runner/compare/comparison.hpp"

namespace mlenv::compare {

struct SizeQuestion {
  const Image* image = nullptr;
  const Image* previous = nullptr;  ///< what the other host has; nullptr: the same before an update
  std::vector<std::string> rows;    ///< asked for; empty: all
  std::function<bool()> stopped = [] { return false; };  ///< asked by several threads
  double seconds = 10;          ///< for copies; those of more than fits are not begun
  double machine_seconds = 15;  ///< to compress the virtual machine's disk; 0: it is not done
};

/// Layers that change when one Debian package of the base does: the base alone, since each other
/// layer is a function of its own inputs. None where the image says nothing of its base.
std::vector<Layer> layers_of_base(const Image& image);
/// Layers whose digests `other` does not have.
std::vector<Layer> layers_beyond(const Image& image, const Image& other);
std::uint64_t bytes_of(const std::vector<Layer>& layers);

/// Adds the computed rows to `rows`, with a cell for each of `sides`; copies layers into a scratch
/// folder of the store where the time of it is asked for, and compresses the virtual machine's disk
/// where that takes part. That either cannot be done is a reason in the row.
void add_sizes(const SizeQuestion& question, const Store& store,
               const std::vector<SideResult>& sides, std::vector<RowResult>& rows,
               Progress& progress);

/// Of memory.added, and what is available now.
void add_density(std::vector<RowResult>& rows, const std::vector<SideResult>& sides);

}  // namespace mlenv::compare
