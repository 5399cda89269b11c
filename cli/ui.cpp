#include "cli/ui.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/standard_output.hpp"
#include "base/text.hpp"
#include "cli/settings.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

int exit_status(Kind kind) {
  switch (kind) {
    case Kind::usage:
      return 2;
    case Kind::no:
      return kAnswerIsNo;
    case Kind::internal:
      return 70;
    case Kind::failed:
      break;
  }
  return 1;
}

void complain(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

/// What begins a line of mlenv's own. A text of somebody else's has none: a registry, a runtime or
/// a node could give advice in its name.
bool speaks_for_mlenv(std::string_view line) {
  constexpr std::array<std::string_view, 5> kOwn = {
      "hint:", "error:", "mlenv:", "because:", "this is a bug in mlenv"};
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return std::any_of(kOwn.begin(), kOwn.end(), [&](std::string_view own) {
    return to_lower(line.substr(0, own.size())) == own;
  });
}

/// Lines that may be shown behind mlenv's own.
std::string quoted_lines(std::string_view text) {
  const std::string lines = printable_lines(text);
  std::string shown;
  bool first = true;
  for (const std::string_view line : split(lines, '\n')) {
    if (!std::exchange(first, false)) shown += speaks_for_mlenv(line) ? "\n    | " : "\n";
    shown += line;
  }
  return shown;
}

/// The same with the store in front.
Error of_store(Error error, const fs::path& folder) {
  const bool is_there = ::access(folder.c_str(), F_OK) == 0;
  const bool is_writable = ::access(folder.c_str(), W_OK | X_OK) == 0;
  error.while_doing(fmt::format("the store `{}` cannot be {}", folder.string(),
                                !is_there      ? "made"
                                : !is_writable ? "written"
                                               : "used"));
  error.hint("set MLENV_STORE to a folder in which you may write");
  return error;
}

/// Root that did not say so works in nobody else's folder: its owner could put a link anywhere in
/// the way. Who names a store trusts its owner, and who came by sudo is its owner.
void require_own_store(const fs::path& folder) {
  struct stat status {};
  const bool is_named = variable("MLENV_STORE").has_value();
  if (is_named || ::geteuid() != 0 || ::stat(folder.c_str(), &status) != 0) return;
  if (status.st_uid == 0 || variable("SUDO_UID") == std::to_string(status.st_uid)) return;
  throw failure("not-a-store", "the store `{}` belongs to another user (id {}), and you are root",
                folder.string(), status.st_uid)
      .because("it is the store by default: `HOME` or `XDG_DATA_HOME` is another user's")
      .hint(
          fmt::format("set MLENV_STORE to a store of root's own, or to `{}` if you trust that user",
                      folder.string()));
}

/// Folders that hold more than a store, even where nothing is in them yet.
void require_store_folder(const fs::path& folder) {
  std::error_code unknown;
  const std::optional<std::string> home = variable("HOME");
  const bool is_home = home && fs::equivalent(folder, *home, unknown);
  if (!is_home && !fs::equivalent(folder, "/", unknown)) return;
  throw failure("not-a-store", "`{}` cannot be a store", folder.string())
      .because(is_home ? "it is your home folder" : "it is this machine's root")
      .hint(
          fmt::format("set MLENV_STORE to a folder of its own: `{}`", (folder / "mlenv").string()));
}

/// The same with what frees room in a store.
Error of_full_store(const Error& error) {
  return error.with_hint(
      "`mlenv gc` frees what nobody needs in the store; then run the same command again: what is "
      "finished is kept");
}

}  // namespace

Error explained_by_store(Error error) {
  const std::vector<std::string>& frames = error.frames();
  const bool full = error.code() == "no-space";
  const bool refused = error.code() == "permission" || frames.back() == errno_text(EROFS);
  if ((!refused && !full) || frames.front().starts_with("the store `")) return error;
  fs::path folder;
  try {
    folder = store_folder();
  } catch (const Error&) {
    return error;  // without a home there is no store that it could be about
  }
  const bool is_store = std::any_of(frames.begin(), frames.end(), [&](const std::string& frame) {
    return frame.find("`" + folder.string() + "/") != std::string::npos;
  });
  if (!is_store) return error;
  return full ? of_full_store(error) : of_store(std::move(error), folder);
}

void Ui::answer(std::string_view line) const {
  if (answers_aside) return say(line);
  write_answer((options.json ? printable_json(line) : printable_lines(line)) + "\n");
}

void Ui::answer_lines(const std::vector<std::string>& lines) const {
  for (const std::string& line : lines) answer(printable(line));
}

void Ui::answer_exactly(std::string_view line) const {
  if (::isatty(STDOUT_FILENO) == 1) return answer(line);
  write_answer(std::string(line) + "\n");
}

void Ui::say(std::string_view line) const {
  if (!options.quiet) complain(quoted_lines(line) + "\n");
}

bool Ui::color() const {
  if (options.color == "always") return true;
  return options.color == "auto" && ::isatty(STDERR_FILENO) == 1 && !variable("NO_COLOR");
}

Progress& Ui::progress() {
  if (!progress_) {
    std::string mode = options.progress;
    if (mode == "auto" && options.json) mode = "none";
    if (mode == "auto") mode = ::isatty(STDERR_FILENO) == 1 ? "tty" : "plain";
    progress_ = make_progress(mode, options.quiet);
  }
  return *progress_;
}

Store& Ui::store() {
  if (!store_) {
    const fs::path folder = store_folder();
    try {
      require_store_folder(folder);
      require_own_store(folder);
      store_ = std::make_unique<Store>(folder);
    } catch (const Error& error) {
      if (error.code() == "store-version" || error.code() == "not-a-store") throw;
      throw of_store(error, folder);
    }
  }
  return *store_;
}

Http& Ui::http() {
  if (!http_) {
    HttpOptions http_options;
    http_options.user_agent = "mlenv/" MLENV_VERSION;
    http_ = std::make_unique<Http>(http_options);
  }
  return *http_;
}

int Ui::report(const Error& error) const {
  const int status = failure_status.value_or(exit_status(error.kind()));
  if (options.json) {
    nlohmann::json value{{"schema", "mlenv.error/1"},
                         {"code", error.code()},
                         {"exit_status", status},
                         {"frames", error.frames()},
                         {"hint", nullptr}};
    if (!error.hint().empty()) value["hint"] = error.hint();
    complain(printable_json(canonical(value)) + "\n");
    return status;
  }
  const bool colored = color();
  std::string text = colored ? "\033[1;31merror:\033[0m " : "error: ";
  bool first = true;
  for (const std::string& frame : error.frames()) {
    text += (first ? "" : "  because: ") + quoted_lines(frame) + "\n";
    first = false;
  }
  if (!error.hint().empty()) {
    text += (colored ? "\033[1;36mhint:\033[0m " : "hint: ") + quoted_lines(error.hint()) + "\n";
  }
  if (error.kind() == Kind::internal) {
    text += "this is a bug in mlenv; please report it with this message\n";
  }
  complain(text);
  return status;
}

RegistryOptions registry_options(bool plain_http) {
  RegistryOptions options;
  options.plain_http = plain_http;
  options.hosts = registry_hosts();
  return options;
}

void say_pushed(const Ui& ui, const Reference& where, const Pusher::Pushed& pushed) {
  ui.say(fmt::format("pushed `{}`: {}, {}; {} already there", where.str(),
                     counted(pushed.uploaded, "layer"), human_bytes(pushed.uploaded_bytes),
                     pushed.present));
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  std::uint64_t scale = 1;
  std::size_t unit = 0;
  while (bytes / scale >= 1000 && unit + 1 < kUnits.size()) {
    scale *= 1000;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  const std::uint64_t tenths = (bytes * 10 + scale / 2) / scale;
  if (tenths >= 1000) return fmt::format("{} {}", (tenths + 5) / 10, kUnits.at(unit));
  return fmt::format("{}.{} {}", tenths / 10, tenths % 10, kUnits.at(unit));
}

}  // namespace mlenv::cli
