#pragma once
// The rows of a comparison, and the probes that measure them: one start of a command gives the
// figures of one or several rows. Tables alone; what is done with them stands in measure.hpp.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runner/compare/comparison.hpp"

namespace mlenv::compare {

struct RowSpec {
  const char* id;
  const char* title;
  const char* unit;
  Better better;
  const char* meaning;
  const char* command;    ///< that measured it
  bool computed = false;  ///< from other figures and from digests, not measured
};

/// In the report's order.
std::span<const RowSpec> row_specs();
const RowSpec* find_spec(std::string_view id);
/// Without figures.
RowResult row_of(const RowSpec& spec);

/// What one start does.
enum class ProbeKind {
  start,     ///< a shell that says a word
  cold,      ///< the same with the image's files out of the page cache
  training,  ///< training.py
  cold_training,
  command,    ///< the person's own
  instances,  ///< several that wait, for their memory
  tools,      ///< programs of the tools' image, one after the other
  script,     ///< a Python file of ours
  snapshot,   ///< what a container wrote, kept
};

struct ToolSpec {
  std::string_view row;           ///< that its output gives
  std::vector<std::string> argv;  ///< words that a shell takes as they are
};

struct ProbeSpec {
  const char* id;
  ProbeKind kind;
  std::vector<std::string_view> rows;  ///< whose figures it gives
  double seconds = 0;                  ///< guessed, until it has been run once
  std::uint64_t wanted = 0;            ///< starts on each side
  std::uint64_t wanted_quick = 0;
  std::vector<ToolSpec> tools;
  const char* script = "";
};

/// The most important first: what there is no time for is what stands last.
const std::vector<ProbeSpec>& probe_specs();

/// Whether `id` is asked for by `words`: ids, or their first part (`cpu`). All are where there are
/// none.
bool is_asked(std::string_view id, const std::vector<std::string>& words);
/// Throws `usage` for a word that means no row.
void check_rows(const std::vector<std::string>& words);

}  // namespace mlenv::compare
