#pragma once
// Under which heading help shows an option of a command that has many.

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}  // namespace CLI

namespace mlenv::cli {

/// Puts each option of `run` and its kin under its heading. What has none stays under `Options`.
void group_options(CLI::App& app);

}  // namespace mlenv::cli
