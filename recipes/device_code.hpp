#pragma once
// Which GPUs a wheel's libraries hold code for, read off their fat binaries.
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/files.hpp"
#include "base/progress.hpp"
#include "recipes/compat/architecture.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

/// Finds fat binaries in the bytes of a library that stream through it (an `.nv_fatbin` section
/// holds one after the other; nvcc's fatbinary.h, and the headers of libraries that cuobjdump
/// lists, read in November 2026): a container header, then entries that each say what kind of code
/// for which architecture follows. Only these headers are looked at, so that compressed code
/// matters no more than plain; a container that is cut short or malformed counts as far as it goes.
class FatbinScanner final : public Sink {
 public:
  void write(ByteView data) override;
  const std::set<DeviceCode>& found() const { return found_; }

 private:
  /// Bytes of `rest` that were dealt with; 0: more are needed.
  std::size_t step(ByteView rest);
  std::size_t search(ByteView rest);
  std::size_t entry(ByteView rest);

  Bytes pending_;           ///< the beginning of something that is not whole yet
  std::uint64_t left_ = 0;  ///< bytes of the container that are still to come
  std::uint64_t skip_ = 0;  ///< of those, an entry's code
  std::set<DeviceCode> found_;
};

/// Of all libraries (`*.so*`) of a wheel; empty for a wheel without device code. Sorted. Throws as
/// `read_zip_directory` and inflating do.
std::vector<DeviceCode> device_code_in(const fs::path& wheel);

/// Where a wheel's bytes are; nullopt: not at hand.
using WheelPath = std::function<std::optional<fs::path>(const LockedWheel&)>;

/// A line for each wheel at hand that has device code, but none for some of the lock's `gpus` (code
/// that must be compiled from PTX counts). NVIDIA's own libraries are not looked at: they leave out
/// what a GPU has no use for, and their CUDA release decides. What was read is remembered in
/// `cache`.
std::vector<std::string> missing_device_code(const Lock& lock, const WheelPath& path_of,
                                             const fs::path& cache, Progress& progress);

}  // namespace mlenv
