#pragma once
// Whether a run gave the same bits as another one.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "runner/facts/facts.hpp"
#include "runner/record/run_record.hpp"

namespace mlenv {

struct ComparedFile {
  std::string path;    ///< as the run declared it, and what is below it: `out`, `out/model.npy`
  std::string within;  ///< what is below it alone
  std::string what;    ///< `same`, `differs`, `missing` (recorded alone), `new` (found alone)
  std::optional<std::uint64_t> recorded_bytes;
  std::optional<std::uint64_t> found_bytes;
  std::optional<std::uint64_t> first_difference;  ///< offset; where the original is still there
  friend bool operator==(const ComparedFile&, const ComparedFile&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("path", self.path);
    visit("what", self.what);
    visit("recorded_bytes", self.recorded_bytes);
    visit("found_bytes", self.found_bytes);
    visit("first_difference", self.first_difference);
  }
};

/// Each file of both, sorted by path. What was absent and still is counts as same; what could not
/// be read differs.
std::vector<ComparedFile> compare_output(const RecordedOutput& recorded,
                                         const RecordedOutput& found);

/// Offset of the first byte that two files do not share; the shorter one's size where that is its
/// end. nullopt: they are the same, or one cannot be read.
std::optional<std::uint64_t> first_difference(const fs::path& a, const fs::path& b);

/// What two hosts have different of all that is known to decide bits: `processor: A, now B`.
std::vector<std::string> host_differences(const Facts& recorded, const Facts& now);

}  // namespace mlenv
