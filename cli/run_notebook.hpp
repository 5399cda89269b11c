#pragma once
// `mlenv run --jupyter`: the image's Jupyter in place of a command.
#include <functional>
#include <optional>
#include <string>

#include "cli/run_life.hpp"
#include "cli/run_recording.hpp"
#include "runner/notebook/server.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}  // namespace CLI

namespace mlenv::cli {

/// Declares it; `word` is empty where it is not given.
void add_notebook_option(CLI::App& app, std::string& word);

/// Of words that were given with it. Throws `usage` for what would make it unreachable, or readable
/// for others.
struct NotebookWords {
  std::string port;  ///< of `add_notebook_option`
  std::vector<std::string> arguments;
  std::string network;
  bool terminal = false;
  bool detach = false;
  std::string name;  ///< of the run; empty: none
};
struct NotebookChoice {
  std::optional<std::uint16_t> port;  ///< nothing: the first that is free
  bool detach = false;
  std::optional<std::string> name;  ///< of the run
};
/// nullopt: it is not asked for.
std::optional<NotebookChoice> parse_notebook(const NotebookWords& words);

class Notebook {
 public:
  /// Makes `run` serve it; `files` of its image. Throws `no-jupyter`, `port-taken`, `no-port`.
  Notebook(const Ui& ui, const NotebookChoice& choice, const ImageNames& files, LocalRun& run);

  /// In the foreground: the URL is answered once the server is reached.
  BeforeStart before_start(Ui& ui);
  /// Throws `jupyter-failed` where it ended by itself, failing, before it was reached.
  void require_reached(const RunOutcome& outcome) const;
  /// Of a run in the background: waits until the server is reached, and returns its URL. Throws
  /// `jupyter-failed` with its last words.
  std::string url_in_background(const Ui& ui, const std::string& id);

 private:
  bool look(Ui& ui);
  Error failed(const std::string& what) const;

  NotebookServer server_;
  NotebookAddress address_;
  std::optional<std::string> name_;
  Fd timer_;
  std::string id_;  ///< empty: the run is not recorded
  bool reached_ = false;
};

/// A run that goes on, with the URL of its notebook. Throws `no-run`, `run-ended`, `no-notebook`.
BegunRun run_with_notebook(const std::string& run);

}  // namespace mlenv::cli
