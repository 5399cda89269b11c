#pragma once
// Fat binaries: the device code inside a library, by the headers in front of each piece.
#include <cstdint>
#include <set>
#include <vector>

#include "base/bytes.hpp"
#include "images/inspect/device_code.hpp"

namespace mlenv {

/// A stretch of a file in which all fat binaries are for the same.
struct FatbinRun {
  std::uint64_t begin = 0;  ///< offset in what was written to the scanner
  std::uint64_t end = 0;
  std::set<DeviceCode> code;
};

/// Finds fat binaries in the bytes of a library that stream through it (an `.nv_fatbin` section
/// holds one after the other; nvcc's fatbinary.h, and the headers of libraries that cuobjdump
/// lists, read in November 2026): a container header, then entries that each say what kind of code
/// for which architecture follows. Only these headers are looked at, so that compressed code
/// matters no more than plain; a container that is cut short or malformed counts as far as it goes.
class FatbinScanner final : public Sink {
 public:
  void write(ByteView data) override;
  /// In order. Where a file has more than many thousands, the last one stands for all others.
  const std::vector<FatbinRun>& runs() const { return runs_; }
  /// Of all runs.
  std::set<DeviceCode> found() const;

  /// Bytes that come next and that it need not see: who can seek passes over them.
  std::uint64_t unneeded() const { return pending_.empty() ? skip_ : 0; }
  void pass_over(std::uint64_t bytes);

 private:
  /// Bytes of `rest` that were dealt with; 0: more are needed.
  std::size_t step(ByteView rest);
  std::size_t search(ByteView rest);
  std::size_t entry(ByteView rest);
  void begin_container(std::uint64_t bytes);

  Bytes pending_;               ///< the beginning of something that is not whole yet
  std::uint64_t position_ = 0;  ///< of what `step` sees first
  std::uint64_t left_ = 0;      ///< bytes of the container that are still to come
  std::uint64_t skip_ = 0;      ///< of those, an entry's code
  std::vector<FatbinRun> runs_;
};

}  // namespace mlenv
