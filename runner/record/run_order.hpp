#pragma once
// In which order runs were recorded. Their ids begin with the time, which a wrong clock spoils: a
// run of the year 2035 would be the last one for years. For runner/record/ alone.
#include <string>
#include <vector>

#include "base/files.hpp"

namespace mlenv {

/// The file that says so, beside the records: an id a line.
inline constexpr const char* kOrderFile = ".order";

/// The next one is `id`. Before its record is there: a line without a record says nothing. Where it
/// cannot be written, the debug log says why.
void note_run(const fs::path& folder, const std::string& id) noexcept;

/// Oldest first. Those that nobody noted, as an earlier mlenv's, come before the others: by their
/// time, and first those whose time is still to come.
void sort_runs(const fs::path& folder, std::vector<std::string>& ids);

}  // namespace mlenv
