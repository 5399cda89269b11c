#pragma once
// What every command gets: where answers go, how progress is drawn, and the global options.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/error.hpp"
#include "base/http.hpp"
#include "base/progress.hpp"
#include "images/registry.hpp"
#include "images/store.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}  // namespace CLI

namespace mlenv::cli {

/// Exit status of a command that did what it was asked, and whose answer is no.
inline constexpr int kAnswerIsNo = 3;

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
  /// Where an image itself goes to stdout: answers go to stderr, as `say` does it.
  bool answers_aside = false;

  /// A line of the answer, on stdout. What could harm a terminal is shown as an escape, here and in
  /// all that goes to stderr; what must stay on one line goes through `printable` before.
  void answer(std::string_view line) const;
  /// Each is one line of the answer, whatever words of others it holds.
  void answer_lines(const std::vector<std::string>& lines) const;
  /// The same with every byte as it is where stdout is no terminal: names of files for scripts.
  void answer_exactly(std::string_view line) const;
  /// A sentence beside the answer, on stderr; not with --quiet.
  void say(std::string_view line) const;
  bool color() const;  ///< on stderr
  /// With --json none, unless --progress asks for it: a line on stderr is then a failure.
  Progress& progress();
  /// Opened when first asked for. Throws `permission` or `io`, naming it, when it cannot be made.
  Store& store();
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
  const char* group;  ///< its heading in the help; empty: no user's command, and not there
  const char* name;
  const char* purpose;
  Action (*declare)(CLI::App& app);
};

Action declare_help(CLI::App& app);
Action declare_init(CLI::App& app);
Action declare_lock(CLI::App& app);
Action declare_add(CLI::App& app);
Action declare_remove(CLI::App& app);
Action declare_build(CLI::App& app);
Action declare_vendor(CLI::App& app);
Action declare_run(CLI::App& app);
Action declare_shell(CLI::App& app);
Action declare_exec(CLI::App& app);
Action declare_ps(CLI::App& app);
Action declare_logs(CLI::App& app);
Action declare_stop(CLI::App& app);
Action declare_wait(CLI::App& app);
Action declare_runs(CLI::App& app);
Action declare_reproduce(CLI::App& app);
Action declare_push(CLI::App& app);
Action declare_pull(CLI::App& app);
Action declare_images(CLI::App& app);
Action declare_inspect(CLI::App& app);
Action declare_diff(CLI::App& app);
Action declare_facts(CLI::App& app);
Action declare_check(CLI::App& app);
Action declare_explain(CLI::App& app);
Action declare_probe(CLI::App& app);
Action declare_data(CLI::App& app);
Action declare_tag(CLI::App& app);
Action declare_rm(CLI::App& app);
Action declare_gc(CLI::App& app);
Action declare_save(CLI::App& app);
Action declare_load(CLI::App& app);
Action declare_store(CLI::App& app);
Action declare_completion(CLI::App& app);
Action declare_generate(CLI::App& app);

RegistryOptions registry_options(bool plain_http);
/// What a push came to, on stderr.
void say_pushed(const Ui& ui, const Reference& where, const Pusher::Pushed& pushed);

/// Help of it, and of what is added to it from now on, is set in our way.
void use_help_formatter(CLI::App& app);
/// As `mlenv COMMAND --help` prints it, without the last newline.
std::string help_text(const CLI::App& command);

/// `run`'s and `exec`'s words with a `--` in front of the job's first, so that its own options stay
/// its own: `run IMAGE -e A=b python -c …`. Other commands' words as they are.
std::vector<std::string> separate_job(std::vector<std::string> words);

/// `1.4 GB`, `312 kB`: decimal, as registries and package indexes count.
std::string human_bytes(std::uint64_t bytes);
/// An error of the system's about a file of the store, with what that means for the store and what
/// to do; any other as it is.
Error explained_by_store(Error error);
/// The image that a name or digest in the store means. Throws `not-found` with a near name where
/// there is one, `bad-reference` or `bad-digest` (usage) for what can be neither. Of an index the
/// image for `platform`; empty: this machine's.
Image image_named(Ui& ui, std::string_view name, std::string_view platform = {});
/// The same, and of an index all of it.
ImageSet image_set_named(Ui& ui, std::string_view name);
/// Throws `bad-reference` (usage) with what to do when the argument is a file's name and no
/// image's.
void refuse_file(Ui& ui, std::string_view argument);
/// Layers in answers as JSON: digest, diff-id, size and title of each.
nlohmann::json layers_as_json(const std::vector<Layer>& layers);
/// The name as the store lists it: `host/repository:tag`, `repository@digest`.
std::string listed_name(const Reference& name);

/// A name for an image. Throws `bad-reference` (usage), also for a digest.
Reference name_to_give(const std::string& text);

}  // namespace mlenv::cli
