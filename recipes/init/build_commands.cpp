#include "recipes/init/build_commands.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/utf8.hpp"
#include "recipes/init/certain_commands.hpp"
#include "recipes/init/docker_words.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/init/listed_words.hpp"
#include "recipes/init/needless_commands.hpp"
#include "recipes/init/run_prefix.hpp"
#include "recipes/init/step_words.hpp"
#include "recipes/logins.hpp"
#include "recipes/recipe.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kNoTool = "not needed: mlenv does without it";
constexpr std::string_view kOtherPython =
    "not needed: `python` and `pip` are the environment's own, and conda is not in the image";
constexpr std::string_view kScript =
    "a script of the shell: name what it installs under `packages` and `system`, and write the "
    "rest as a step of `run`";
constexpr std::string_view kDecided =
    "the values that are written here decide it: what they choose is taken, and no more";
constexpr std::string_view kLost =
    "what lies in /tmp is gone when a step ends: write what it does as one step of `run`, from "
    "files in another folder";
constexpr std::string_view kNvidiasArchive =
    "not needed: CUDA comes with the framework's wheels, and from no archive of NVIDIA's";
constexpr std::string_view kNodesArchive =
    "not needed: Node.js is `nodejs` of the base's own archive";
constexpr std::string_view kClonedBySsh =
    "it works on a repository that only ssh reaches, and steps have no key: clone it here, and "
    "name "
    "its folder in `files`";
constexpr std::string_view kUsers =
    "the image's user is root, and its files are root's: whoever runs it needs no user in it";

class Converter {
 public:
  Converter(const BuildCommands& commands, const FindFile& file, Conversion& to)
      : commands_(commands),
        file_(file),
        to_(to),
        memory_(commands.memory == nullptr ? own_memory_ : *commands.memory),
        before_(memory_.clones.size()),
        folder_(commands.folder),
        here_([this](std::string_view name) { return found_here(name); }) {}

  void convert() {
    convert_all();
    if (commands_.memory == nullptr) own_memory_.lists.tell_unused(to_);
  }

 private:
  void convert_all() {
    CertainScript script = certain_commands(commands_.text, script_values());
    to_.check_count(script.commands.size(), "commands");
    const std::vector<ShellCommand> all = std::move(script.commands);
    if (const std::string inner = text_of_shell(all); !inner.empty()) {
      BuildCommands within = commands_;
      within.text = inner;
      within.bash = true;
      return convert_commands(within, file_, to_);
    }
    std::set<std::string> told;
    for (const CertainScript::Decided& one : script.decided) {
      if (!one.by_argument || !told.insert(one.condition).second) continue;
      to_.note(commands_.place, one.condition, kDecided);
    }
    if (std::any_of(all.begin(), all.end(), [](const ShellCommand& one) { return one.control; })) {
      return leave_out(commands_.text, kScript);
    }
    const std::vector<ShellCommand> rest = without_installs(all);
    if (std::all_of(rest.begin(), rest.end(), only_shows)) return;
    const bool clones = installed_ && std::all_of(rest.begin(), rest.end(), [&](const auto& one) {
                          return is_of_own_clone(one);
                        });
    if (!clones) step(rest);
  }

  PipedLists piped_lists() {
    return {[this](std::string_view commands) {
              return memory_.lists.pipe(commands, {commands_.place, folder_, commands_.known, here_,
                                                   to_, commands_.text, memory_.text});
            },
            [this](std::string_view commands) {
              to_.note(commands_.place, commands,
                       "what it makes of the list is not known: all of the list is taken");
            }};
  }

  ScriptValues script_values() const {
    return {commands_.known, commands_.unset, commands_.paths,
            [this](const std::string& name) -> std::optional<bool> {
              if (file_(name)) return true;
              // What is not here may be in the image all the same.
              const bool nowhere = commands_.all_here && name.find_first_of("/~$") != 0;
              return nowhere ? std::optional(false) : std::nullopt;
            },
            installs_something};
  }

  /// A file by its name, from the folder that `cd` led to.
  std::optional<fs::path> found_here(std::string_view name) const {
    const fs::path whole = fs::path(folder_.empty() ? "/" : folder_) / name;
    std::optional<fs::path> found;
    if (folder_ == commands_.folder || name.starts_with('/')) {
      found = file_(name);
    } else {
      // Where it is not known where commands start, all is relative to that.
      found = file_(commands_.folder.empty() ? whole.relative_path().string() : whole.string());
    }
    return found ? found : found_in_own_clone(whole.lexically_normal());
  }

  bool is_own_by_ssh(const Clone& clone) const {
    return is_by_ssh(clone) && is_clone_of_folder(clone, to_.folder());
  }

  /// Of a build that clones the project which it lies in. What pip is told of a list that is cloned
  /// by https, it finds itself.
  std::optional<fs::path> found_in_own_clone(const fs::path& path) const {
    for (const Clone& clone : memory_.clones) {
      if (!is_of_clone(clone, path.string()) || !is_clone_of_folder(clone, to_.folder())) continue;
      if (!is_by_ssh(clone) && path.extension() == ".txt") continue;
      fs::path here = to_.folder() / path.lexically_relative(clone.path);
      std::error_code unknown;
      if (fs::is_regular_file(here, unknown)) return here;
    }
    return std::nullopt;
  }

  /// A step has no key for it, and needs none.
  void put_own_clone(const ShellCommand& one, const Clone& clone) {
    const bool in_image = commands_.obstacle.empty() || says(commands_.obstacle, "type=ssh");
    auto& files = to_.draft.files;
    const bool there =
        std::any_of(files.begin(), files.end(), [](const auto& file) { return file.first == "."; });
    if (!in_image || there || !reserved_place(clone.path).empty() ||
        !is_clean_absolute_path(clone.path)) {
      return to_.note(commands_.place, one.text,
                      "the build clones the project that it lies in: this folder is read for it");
    }
    files.emplace_back(".", clone.path);
    to_.note(commands_.place, one.text,
             "the build clones the project that it lies in: `files` copies this folder there");
  }

  /// Whether it works on a repository that no step can clone.
  bool is_of_clone_by_ssh(const ShellCommand& one) const {
    return std::any_of(memory_.clones.begin(), memory_.clones.end(), [&](const Clone& clone) {
      if (!is_by_ssh(clone) || is_clone_of_folder(clone, to_.folder())) return false;
      return is_of_clone(clone, commands_.folder) ||
             std::any_of(one.words.begin(), one.words.end(),
                         [&](const std::string& word) { return is_of_clone(clone, word); });
    });
  }

  /// TEXT of `bash -c TEXT`, where that is all.
  static std::string text_of_shell(const std::vector<ShellCommand>& all) {
    if (all.size() != 1 || !all.front().alone || !all.front().group.empty()) return {};
    const std::vector<std::string>& words = all.front().words;
    if (words.size() != 3 || !words[0].ends_with("bash") || !words[1].starts_with('-') ||
        !words[1].ends_with('c')) {
      return {};
    }
    return words[2];
  }

  /// What is left for a step when packages are installed.
  std::vector<ShellCommand> without_installs(const std::vector<ShellCommand>& all) {
    std::vector<ShellCommand> rest;
    for (auto begin = all.begin(); begin != all.end();) {
      const auto end = end_of_pipe(begin, all.end());
      // Lists are read as the commands before left them, from where these led.
      for (const ShellCommand& one : with_listed_words({begin, end}, here_, piped_lists())) {
        if (is_of_tool(one)) continue;
        if (one.group.empty()) {
          if (!taken(one)) rest.push_back(one);
        } else {
          group(one, rest);
        }
      }
      begin = end;
    }
    return rest;
  }

  using CommandPlace = std::vector<ShellCommand>::const_iterator;
  static CommandPlace end_of_pipe(CommandPlace begin, CommandPlace end) {
    if (begin->alone) return begin + 1;
    return std::find_if(begin, end, [](const ShellCommand& one) { return one.alone; });
  }

  /// `curl … | sh` of a tool that mlenv does without.
  bool is_of_tool(const ShellCommand& one) {
    constexpr std::array<std::string_view, 5> kReading = {"sh", "bash", "env", "sudo", "tar"};
    if (is_of_node(one)) return true;
    const std::string program = one.words.empty() ? "" : one.words.front();
    const bool reads =
        piped_ && !one.alone && (is_among(kReading, program) || program.starts_with("python"));
    const bool rust_too = says(one.text, "sh.rustup.rs") && !one.alone;
    const bool brings = brings_tool(one.text) || rust_too;
    if (says(one.text, "sh.rustup.rs") && brings) {
      rust(one);
    } else if (brings && !reads) {
      leave_out(one.text, kNoTool);
    }
    piped_ = brings || reads;
    return piped_;
  }

  /// What brings the makers' own Node.js: Debian's takes its place.
  bool is_of_node(const ShellCommand& one) {
    const bool reads = node_piped_ && !one.alone && reads_program(one);
    if (!reads && !brings_node(one)) {
      node_piped_ = false;
      return false;
    }
    node_piped_ = !one.alone;
    const std::string release = node_release(one.text);
    if (release.empty() || !memory_.nodes.insert(release).second) {
      if (!reads) to_.leave_out_with_others(commands_.place, one.text, kNodesArchive);
      return true;
    }
    to_.system_package(commands_.place, "nodejs");
    to_.note(commands_.place, one.text,
             fmt::format("Node.js {} is `nodejs` of the base's archive here, in `system`: 12 in "
                         "Debian 11 and Ubuntu 22.04, 18 in Debian 12 and Ubuntu 24.04, 20 in "
                         "Debian 13",
                         release));
    return true;
  }

  /// A script that installs packages is read as if it stood here.
  bool takes_script(const ShellCommand& one) {
    const std::string name = commands_.script ? "" : script_named_by(one);
    const std::optional<fs::path> path = name.empty() ? std::nullopt : here_(name);
    if (!path || !to_.holds(*path)) return false;
    BuildCommands within = commands_;
    within.text = decoded_text(read_small_file(*path, size_limit::kConverted));
    within.folder = folder_;
    within.place = {path->lexically_normal().string(), 0};
    within.script = true;
    within.bash = within.bash || within.text.starts_with("#!/bin/bash") ||
                  within.text.starts_with("#!/usr/bin/env bash");
    const CertainScript script = certain_commands(within.text, script_values());
    bool installs = false;
    for (const ShellCommand& each : script.commands) {
      // A step can start it as it is.
      if (commands_.obstacle.empty() && (each.control || !each.inside.empty())) return false;
      installs = installs || installs_something(each);
    }
    if (installs) convert_commands(within, file_, to_);
    return installs;
  }

  bool is_needless(const ShellCommand& one, const std::vector<std::string>& bare) {
    const std::string_view why = why_needless(one, bare);
    if (why.empty()) return false;
    for (const std::string& word : one.words) {
      const bool wheel = says(word, "://") && word.ends_with(".whl");
      if (wheel && without_logins(word) == word) memory_.wheels.push_back(word);
    }
    leave_out(one.text, why);
    return true;
  }

  /// Whether a key of the recipe says it, or it is not needed.
  bool taken(const ShellCommand& one) {
    if (memory_.lists.take(one, {commands_.place, folder_, commands_.known, here_, to_,
                                 commands_.text, memory_.text})) {
      return true;
    }
    if (is_of_nvidias_archive(one)) {
      leave_out(one.text, kNvidiasArchive);
      return true;
    }
    if (!one.inside.empty()) return whole_taken(one);
    if (takes_script(one)) return true;
    const std::vector<std::string> bare = program_words(one);
    foreign_ = foreign_ || adds_archive(one, bare);
    if (one.alone && is_of_users(one, bare)) {
      to_.leave_out_with_others(commands_.place, one.text, kUsers);
      std::string home = home_made_by(bare);
      if (!home.empty() && !says(home, "$")) memory_.homes.push_back(std::move(home));
      return true;
    }
    if (is_needless(one, bare)) return true;
    const bool of_packages = to_.draft.base.empty() || is_package_base(to_.draft.base);
    if (one.alone && is_of_another_python(one, of_packages)) {
      leave_out(one.text, kOtherPython);
      return true;
    }
    if (!one.alone) return false;
    if (!one.simple) return installs_partly(one, bare);
    remember_words(one);
    if (takes_own_clone(one, bare)) return true;
    set_reference(memory_.clones, bare, folder_);
    const bool install =
        convert_install({commands_.place, with_addresses(one.words, memory_.wheels), one.text,
                         folder_, memory_.clones, foreign_, memory_.builds_wheel, commands_.paths,
                         [this](std::string_view name) { return made_list(name); }, memory_.copied},
                        here_, to_);
    installed_ = installed_ || install;
    if (install && says(one.text, "install")) tell_build_variables(one);
    return install;
  }

  /// `cd FOLDER` and `export NAME=VALUE` count for what comes behind them.
  void remember_words(const ShellCommand& one) {
    if (one.words.size() == 2 && one.words.front() == "export" && says(one.words[1], "=")) {
      exported_.push_back(one.words[1]);
    }
    if (one.words.size() > 1 && one.words.front() == "cd") {
      const fs::path from = folder_.empty() ? "/" : folder_;
      folder_ = (from / one.words[1]).lexically_normal().string();
    }
  }

  /// Whether it is a clone of the project itself, which lies here.
  bool takes_own_clone(const ShellCommand& one, const std::vector<std::string>& bare) {
    const auto clone = clone_of(bare, folder_);
    if (!clone) return false;
    memory_.clones.push_back(*clone);
    if (!is_own_by_ssh(*clone)) return false;
    put_own_clone(one, *clone);
    return true;
  }

  std::optional<MadeText> made_list(std::string_view name) {
    const MadeList* list = memory_.lists.read(name, folder_);
    if (list == nullptr) return std::nullopt;
    return MadeText{list->source, list->text, list->command};
  }

  /// `TORCH_CUDA_ARCH_LIST=8.0 pip install .`: what stands before it, or was exported.
  void tell_build_variables(const ShellCommand& one) {
    std::vector<std::string> all = exported_;
    for (const std::string& word : one.words) {
      const std::size_t equal = word.find('=');
      if (equal == std::string::npos || !is_env_name(word.substr(0, equal))) break;
      all.push_back(word);
    }
    for (const std::string& variable : all) {
      const std::string name = variable.substr(0, variable.find('='));
      constexpr std::array<std::string_view, 5> kOthers = {"PATH", "LD_LIBRARY_PATH", "CUDA_HOME",
                                                           "DEBIAN_FRONTEND", "MAX_JOBS"};
      if (is_among(kOthers, name) || is_manager_variable(name)) continue;
      to_.leave_out_with_others(commands_.place, variable,
                                "variables of builds from source: `build: {env: …}` gives them");
    }
    exported_.clear();
  }

  /// What lies in /tmp is gone when a step ends: a clone of an earlier one, a copied file.
  bool is_of_lost_files(const ShellCommand& one) const {
    const auto lost = [&](const std::string& path) {
      const auto end = memory_.clones.begin() + static_cast<std::ptrdiff_t>(before_);
      return path.starts_with("/tmp/") &&
             (file_(path).has_value() ||
              std::any_of(memory_.clones.begin(), end,
                          [&](const Clone& clone) { return is_of_clone(clone, path); }));
    };
    if (one.words.size() > 1 && one.words.front() == "cd") return lost(one.words[1]);
    return std::any_of(one.words.begin(), one.words.end(), lost) ||
           std::any_of(one.inside.begin(), one.inside.end(),
                       [&](const ShellCommand& each) { return is_of_lost_files(each); });
  }

  /// A clone in /tmp, and going there: it is gone when the step ends.
  bool is_of_own_clone(const ShellCommand& one) const {
    const std::vector<std::string> words = program_words(one);
    if (!one.alone || words.size() < 2 || !one.inside.empty()) return false;
    if (words.front() != "git" && words.front() != "cd") return only_shows(one);
    return std::any_of(memory_.clones.begin() + static_cast<std::ptrdiff_t>(before_),
                       memory_.clones.end(), [&](const Clone& clone) {
                         const bool here = clone.path.starts_with("/tmp/");
                         return here && (says(one.text, clone.url) ||
                                         says(clone.path, words.back()) || words.front() == "git");
                       });
  }

  /// Of a script that stays whole.
  bool whole_taken(const ShellCommand& one) {
    if (std::any_of(one.inside.begin(), one.inside.end(), installs_something)) {
      leave_out(one.text, kScript);
      return true;
    }
    const bool users = std::any_of(one.inside.begin(), one.inside.end(), [](const auto& each) {
      return is_of_users(each, program_words(each));
    });
    if (users) leave_out(one.text, kUsers);
    return users;
  }

  /// `pip install torch==2.1+cu$X --extra-index-url …/cu$X`: what is known of it, where only values
  /// of variables are not.
  bool installs_partly(const ShellCommand& one, const std::vector<std::string>& bare) {
    const bool pip = !bare.empty() && (bare.front().starts_with("pip") ||
                                       (bare.size() > 2 && bare[1] == "-m" && bare[2] == "pip"));
    if (!pip || one.text.find_first_of("><`") != std::string::npos || says(one.text, "$(")) {
      return false;
    }
    ShellCommand known = one;
    known.words.clear();
    for (const std::string& word : one.words) {
      const std::size_t variable = word.find('$');
      const std::size_t plus = word.find('+');
      if (variable == std::string::npos) {
        known.words.push_back(word);
      } else if (word.find("==") < plus && plus < variable) {
        known.words.push_back(word.substr(0, plus));
      } else if (!known.words.empty() && known.words.back().ends_with("-url")) {
        known.words.pop_back();
      } else {
        return false;
      }
    }
    leave_out(one.text, "a variable in it is not known: it is taken without that");
    return convert_install(
        {commands_.place, known.words, one.text, folder_, memory_.clones, foreign_}, here_, to_);
  }

  /// `(cd x && pip install . && make)`: what is left of it, in a group again.
  void group(const ShellCommand& one, std::vector<ShellCommand>& rest) {
    const std::string before = folder_;
    const std::vector<ShellCommand> inside = shell_commands(one.group, commands_.known);
    const bool plain =
        one.alone && std::none_of(inside.begin(), inside.end(), [](const auto& each) {
          return each.control || !each.group.empty();
        });
    if (!plain) return rest.push_back(one);
    const std::vector<ShellCommand> left = without_installs(inside);
    folder_ = before;
    if (std::all_of(left.begin(), left.end(), only_shows)) return;
    const bool whole = std::all_of(left.begin(), left.end(),
                                   [](const auto& each) { return step_obstacle(each).empty(); });
    if (!whole) {
      rest.insert(rest.end(), left.begin(), left.end());
      return;
    }
    ShellCommand made = one;
    made.text.clear();
    made.words = left.front().words;
    for (const ShellCommand& each : left) {
      made.text += (made.text.empty() ? "" : " && ") + each.text;
      if (fetches(program_words(each))) made.words = each.words;
    }
    made.text = left.size() == inside.size() ? one.text : '(' + made.text + ')';
    rest.push_back(std::move(made));
  }

  void rust(const ShellCommand& one) {
    to_.system_package(commands_.place, "rustc");
    to_.system_package(commands_.place, "cargo");
    leave_out(one.text, "Rust is Debian's here, in `system`");
  }

  void leave_out(std::string_view text, std::string_view why) {
    to_.leave_out(commands_.place, text, why);
  }

  /// All of them or none: half of what belongs together would fail, or do something else.
  void step(const std::vector<ShellCommand>& rest) {
    if (std::any_of(rest.begin(), rest.end(),
                    [&](const auto& one) { return is_of_lost_files(one); })) {
      for (const ShellCommand& one : rest) leave_out(one.text, kLost);
      return;
    }
    if (std::any_of(rest.begin(), rest.end(),
                    [&](const auto& one) { return is_of_clone_by_ssh(one); })) {
      for (const ShellCommand& one : rest) leave_out(one.text, kClonedBySsh);
      return;
    }
    const bool possible = commands_.obstacle.empty() &&
                          std::all_of(rest.begin(), rest.end(),
                                      [&](const auto& one) { return step_obstacle(one).empty(); });
    if (!possible) return leave_out_all(rest);
    Conversion::Step made{commands_.folder, {}};
    std::string text;
    for (const ShellCommand& one : rest) {
      bring_npm(one);
      text += (text.empty() ? "" : "\n") + made_repeatable(without_sudo(one.text), one.words);
      made.step.network = made.step.network || fetches(program_words(one));
    }
    const std::string lacking = variable_without_value(commands_, text);
    if (!lacking.empty()) {
      std::replace(text.begin(), text.end(), '\n', ';');
      return leave_out(text, why_without_value(lacking));
    }
    text = with_surroundings(std::move(text));
    if (has_control(text, "\t\n")) return leave_out(commands_.text, "control characters are in it");
    made.step.command = std::move(text);
    made.step.secrets = commands_.secrets;
    to_.add_step(std::move(made));
  }

  void leave_out_all(const std::vector<ShellCommand>& rest) {
    for (const ShellCommand& one : rest) {
      const std::string_view why = step_obstacle(one);
      if (!why.empty()) {
        leave_out(one.text, why);
      } else if (!only_shows(one)) {
        to_.leave_out_with_others(commands_.place, one.text,
                                  commands_.obstacle.empty()
                                      ? "it belongs to what cannot be taken over"
                                      : std::string_view(commands_.obstacle));
      }
    }
  }

  /// Debian has it apart from Node.js.
  void bring_npm(const ShellCommand& one) {
    const std::vector<std::string> words = program_words(one);
    const bool node = !words.empty() && (words.front() == "npm" || words.front() == "npx");
    const auto& system = to_.draft.system;
    if (node && std::find(system.begin(), system.end(), "nodejs") != system.end()) {
      to_.system_package(commands_.place, "npm");
    }
  }

  /// With the folders and variables that the commands count on.
  std::string with_surroundings(std::string text) const {
    for (const std::string& home : memory_.homes) {
      if (says(text, home)) text.insert(0, fmt::format("mkdir -p {}\n", shell_quoted(home)));
    }
    for (const auto& [name, value] : commands_.arguments) {
      if (names_variable(text, name))
        text.insert(0, fmt::format("{}={}\n", name, shell_quoted(value)));
    }
    return commands_.bash ? "bash -euo pipefail -c " + shell_quoted(text) : text;
  }

  const BuildCommands& commands_;
  const FindFile& file_;
  Conversion& to_;
  CommandsMemory own_memory_;
  CommandsMemory& memory_;
  std::size_t before_;  ///< clones of earlier commands of the build
  bool installed_ = false;
  std::vector<std::string> exported_;  ///< `NAME=value`
  std::string folder_;                 ///< where the next command starts
  FindFile here_;                      ///< from there
  bool piped_ = false;                 ///< into a shell, from what is not needed
  bool node_piped_ = false;            ///< the same of Node.js
  bool foreign_ = false;               ///< an archive was added
};

}  // namespace

std::string variable_without_value(const BuildCommands& commands, std::string_view text) {
  for (const auto* names : {&commands.lost, &commands.unset}) {
    const auto found = std::find_if(names->begin(), names->end(), [&](const std::string& name) {
      return needs_variable(text, name) && !commands.arguments.contains(name);
    });
    if (found != names->end()) return *found;
  }
  return {};
}

std::string why_without_value(std::string_view variable) {
  return fmt::format(
      "`{}` has no value in the Dockerfile: write it as a step of `run` with the value that is "
      "meant",
      variable);
}

void convert_commands(const BuildCommands& commands, const FindFile& file, Conversion& to) {
  Converter(commands, file, to).convert();
}

std::string shell_quoted(std::string_view word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return is_alphanumeric(c) || std::string_view("._/-:@+,=%").find(c) != std::string_view::npos;
  });
  if (plain) return std::string(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + '\'';
}

}  // namespace mlenv
