#pragma once
// Runs that go on, as commands about them find them.
#include <optional>
#include <string>
#include <vector>

#include "runner/record/run_records.hpp"

namespace mlenv::cli {

/// Of this machine's store.
RunRecords run_records();

/// Of a run that goes on: of that id or name, or, unless the word names an image, what else
/// `RunRecords::find` takes it for. nullopt: there is none.
std::optional<std::string> running_run(const std::string& word, bool is_image);

/// Throws `run-ended` when the run does not go on, or goes on on another machine; `what` would have
/// been done.
void require_running(const RunRecords& records, const std::string& id);

struct ShellWords {
  std::vector<std::string> env;
  std::string workdir;
};
/// The best shell that the run's image has, with our terminal when there is one; its status.
int shell_in_run(const std::string& id, const ShellWords& words);

}  // namespace mlenv::cli
