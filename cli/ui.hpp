#pragma once
// What every command gets: where answers go, how progress is drawn, and the global options.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/http.hpp"
#include "base/progress.hpp"
#include "images/registry.hpp"
#include "images/store.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}  // namespace CLI

namespace mlenv::cli {

struct GlobalOptions {
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  std::string color = "auto";     ///< auto, always, never
  std::string progress = "auto";  ///< auto, tty, plain, json, none
};

class Ui {
 public:
  GlobalOptions options;
  /// Exit status of every failure, where it must not be taken for a command's own.
  std::optional<int> failure_status;

  /// A line of the answer, on stdout.
  static void answer(std::string_view line);
  /// A sentence beside the answer, on stderr; not with --quiet.
  void say(std::string_view line) const;
  bool color() const;  ///< on stderr
  Progress& progress();
  Store& store();  ///< opened when first asked for
  Http& http();
  /// Prints it as text, or as mlenv.error/1 with --json, on stderr; returns the exit status.
  int report(const Error& error) const;

 private:
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Http> http_;
};

/// Draws as `mode` says: `tty` one redrawn block, `plain` a line at each end, `json` a line an
/// event.
std::unique_ptr<Progress> make_progress(std::string_view mode, bool quiet);

using Action = std::function<int(Ui&)>;
struct Command {
  const char* name;
  const char* purpose;
  Action (*declare)(CLI::App& app);
};

Action declare_lock(CLI::App& app);
Action declare_build(CLI::App& app);
Action declare_run(CLI::App& app);
Action declare_push(CLI::App& app);
Action declare_pull(CLI::App& app);
Action declare_images(CLI::App& app);
Action declare_inspect(CLI::App& app);
Action declare_tag(CLI::App& app);
Action declare_rm(CLI::App& app);
Action declare_save(CLI::App& app);
Action declare_store(CLI::App& app);

RegistryOptions registry_options(bool plain_http);
/// What a push came to, on stderr.
void say_pushed(const Ui& ui, const Reference& where, const Pusher::Pushed& pushed);

/// `run`'s words with a `--` in front of the job's first, so that its own options stay its own:
/// `run IMAGE -e A=b python -c …`. Other commands' words as they are.
std::vector<std::string> separate_job(std::vector<std::string> words);

/// `1.4 GB`, `312 kB`: decimal, as registries and package indexes count.
std::string human_bytes(std::uint64_t bytes);
/// The image that a name or digest in the store means; throws `not-found` with near names.
Image image_named(Ui& ui, std::string_view name);

}  // namespace mlenv::cli
