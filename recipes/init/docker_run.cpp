#include "recipes/init/docker_run.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "recipes/init/docker_words.hpp"
#include "recipes/init/step_words.hpp"
#include "recipes/recipe.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

class DockerRun {
 public:
  DockerRun(const DockerInstruction& one, BuildCommands commands, const FindFile& file,
            Conversion& to)
      : one_(one), commands_(std::move(commands)), file_(file), to_(to) {}

  void convert() {
    for (const std::string& each : one_.flags) flag(each);
    if (const auto words = exec_form(one_.text)) {
      std::vector<std::string> quoted;
      for (const std::string& word : *words) quoted.push_back(shell_quoted(word));
      commands_.text = join(quoted, " ");
    } else if (!one_.heredocs.empty()) {
      const bool script =
          one_.text.starts_with("<<") && one_.text.find_first_of(" \t") == std::string::npos;
      // A heredoc alone is a script: a command a line.
      const DockerHeredoc& heredoc = one_.heredocs.front();
      if (!script || heredoc.text.starts_with("#!")) return input();
      commands_.place.line = heredoc.line;
      commands_.text = heredoc.text;
    }
    convert_commands(commands_, file_, to_);
  }

 private:
  void leave_out(std::string_view text, std::string_view why) {
    to_.leave_out(commands_.place, text, why);
  }
  void leave_out(std::string_view why) {
    std::string text = "RUN";
    for (const std::string& each : one_.flags) text += ' ' + each;
    leave_out(text + ' ' + one_.text, why);
  }

  void flag(const std::string& flag) {
    const std::string secret = secret_of(flag);
    if (!secret.empty()) {
      commands_.secrets.push_back(secret);
    } else if (says(flag, "type=cache")) {
      leave_out("RUN " + flag, "not needed: downloads are kept in mlenv's cache");
    } else if (says(flag, "type=bind") && !says(flag, "from=")) {
      // What installs packages finds its file in this folder; a step would not.
      commands_.obstacle = "steps of `run` have no mounts: `files` copies what they read";
    } else if (flag == "--network=none" || flag == "--network=default") {
      leave_out("RUN " + flag, "not needed: steps have no network unless they ask");
    } else {
      commands_.obstacle = fmt::format("steps of `run` know no `{}`", shown_text(flag));
      leave_out("RUN " + flag, "no key of the recipe stands for it");
    }
  }

  /// Of a mount that is a secret and nothing more; empty for others.
  static std::string secret_of(std::string_view flag) {
    constexpr std::string_view kMount = "--mount=";
    if (!flag.starts_with(kMount)) return {};
    std::string secret;
    for (const std::string_view part : split(flag.substr(kMount.size()), ',')) {
      if (part.starts_with("id=")) {
        secret = part.substr(3);
      } else if (part != "type=secret" && !part.starts_with("required")) {
        return {};
      }
    }
    return is_secret_id(secret) ? secret : "";
  }

  /// A program's input: the step is the same text for its shell.
  void input() {
    std::string text = heredoc_script(one_);
    if (!commands_.obstacle.empty()) return leave_out(commands_.obstacle);
    if (has_control(text, "\t\n")) return leave_out("control characters are in it");
    const bool network = says(text, "://") || says(text, "download") || says(text, "git clone");
    const std::string lacking = variable_without_value(commands_, text);
    if (!lacking.empty()) return leave_out(why_without_value(lacking));
    for (const auto& [name, value] : commands_.arguments) {
      if (names_variable(text, name)) {
        text.insert(0, fmt::format("{}={}\n", name, shell_quoted(value)));
      }
    }
    to_.add_step({commands_.folder, {text, network, commands_.secrets}});
  }

  const DockerInstruction& one_;
  BuildCommands commands_;
  const FindFile& file_;
  Conversion& to_;
};

}  // namespace

void convert_run(const DockerInstruction& one, BuildCommands commands, const FindFile& file,
                 Conversion& to) {
  DockerRun(one, std::move(commands), file, to).convert();
}

}  // namespace mlenv
