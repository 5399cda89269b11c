#include "recipes/init/build_commands.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/init/docker_words.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/init/listed_words.hpp"
#include "recipes/init/run_prefix.hpp"
#include "recipes/init/step_words.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kNoTool = "not needed: mlenv does without it";
constexpr std::string_view kOtherPython =
    "not needed: `python` and `pip` are the environment's own, and conda is not in the image";
constexpr std::string_view kUsers =
    "the image's user is root, and its files are root's: whoever runs it needs no user in it";

class Converter {
 public:
  Converter(const BuildCommands& commands, const FindFile& file, Conversion& to)
      : commands_(commands),
        file_(file),
        to_(to),
        memory_(commands.memory == nullptr ? own_memory_ : *commands.memory),
        folder_(commands.folder) {}

  void convert() {
    const std::vector<ShellCommand> all =
        with_listed_words(shell_commands(commands_.text, commands_.known), file_);
    if (const std::string inner = text_of_shell(all); !inner.empty()) {
      BuildCommands within = commands_;
      within.text = inner;
      within.bash = true;
      return convert_commands(within, file_, to_);
    }
    if (std::any_of(all.begin(), all.end(), [](const ShellCommand& one) { return one.control; })) {
      return leave_out(commands_.text,
                       "a script of the shell: name what it installs under `packages` and "
                       "`system`, and write the rest as a step of `run`");
    }
    const std::vector<ShellCommand> rest = without_installs(all);
    if (!std::all_of(rest.begin(), rest.end(), only_shows)) step(rest);
  }

 private:
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
    for (const ShellCommand& one : all) {
      if (is_of_tool(one)) continue;
      if (one.group.empty()) {
        if (!taken(one)) rest.push_back(one);
      } else {
        group(one, rest);
      }
    }
    return rest;
  }

  /// `curl … | sh` of a tool that mlenv does without.
  bool is_of_tool(const ShellCommand& one) {
    constexpr std::array<std::string_view, 5> kReading = {"sh", "bash", "env", "sudo", "tar"};
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

  /// Whether a key of the recipe says it, or it is not needed.
  bool taken(const ShellCommand& one) {
    const std::vector<std::string> bare = program_words(one);
    foreign_ = foreign_ || adds_archive(one, bare);
    if (one.alone && is_of_users(one, bare)) {
      leave_out(one.text, kUsers);
      std::string home = home_made_by(bare);
      if (!home.empty()) memory_.homes.push_back(std::move(home));
      return true;
    }
    const bool of_packages = to_.draft.base.empty() || is_package_base(to_.draft.base);
    if (one.alone && is_of_another_python(one, of_packages)) {
      leave_out(one.text, kOtherPython);
      return true;
    }
    if (!one.alone) return false;
    if (!one.simple) return installs_partly(one, bare);
    if (one.words.size() > 1 && one.words.front() == "cd") {
      folder_ = (fs::path(folder_) / one.words[1]).lexically_normal().string();
    }
    if (auto clone = clone_of(bare, folder_)) memory_.clones.push_back(*std::move(clone));
    return convert_install(
        {commands_.place, one.words, one.text, folder_, memory_.clones, foreign_}, file_, to_);
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
        {commands_.place, known.words, one.text, folder_, memory_.clones, foreign_}, file_, to_);
  }

  /// `(cd x && pip install . && make)`: what is left of it, in a group again.
  void group(const ShellCommand& one, std::vector<ShellCommand>& rest) {
    const std::string before = folder_;
    const std::vector<ShellCommand> inside =
        with_listed_words(shell_commands(one.group, commands_.known), file_);
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
    const bool possible = commands_.obstacle.empty() &&
                          std::all_of(rest.begin(), rest.end(),
                                      [&](const auto& one) { return step_obstacle(one).empty(); });
    if (!possible) return leave_out_all(rest);
    Conversion::Step made{commands_.folder, {}};
    std::string text;
    for (const ShellCommand& one : rest) {
      bring_npm(one);
      text += (text.empty() ? "" : "\n") + without_sudo(one.text);
      made.step.network = made.step.network || fetches(program_words(one));
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
      leave_out(one.text, !why.empty()                 ? why
                          : commands_.obstacle.empty() ? "it belongs to what cannot be taken over"
                                                       : commands_.obstacle);
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
  std::string folder_;    ///< where the next command starts
  bool piped_ = false;    ///< into a shell, from what is not needed
  bool foreign_ = false;  ///< an archive was added
};

}  // namespace

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
