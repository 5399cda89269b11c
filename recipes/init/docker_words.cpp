#include "recipes/init/docker_words.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/init/run_prefix.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

template <std::size_t N>
bool says_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view one) { return says(text, one); });
}

/// Instructions that a recipe has no words for.
struct OtherInstruction {
  std::string_view keyword;
  std::string_view why;
};
constexpr std::array<OtherInstruction, 8> kOtherInstructions = {
    {{"USER", "the image's user is root"},
     {"EXPOSE", "ports are not part of an image here: `mlenv run` shares the host's network"},
     {"VOLUME", "mount it when it runs: `mlenv run -v`"},
     {"LABEL", "labels have no key"},
     {"MAINTAINER", "labels have no key"},
     {"HEALTHCHECK", "health checks have no key"},
     {"STOPSIGNAL", "the signal is SIGTERM, as `mlenv run` got it"},
     {"ONBUILD", "nothing is built on top by itself"}}};

}  // namespace

std::vector<std::string> own_command(std::vector<std::string> words) {
  bool run = false;
  while (const std::size_t length = runner_length(words)) {
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(length));
    run = true;
  }
  // The entry of micromamba's images.
  if (words.size() > 1 && words.front().ends_with("/_entrypoint.sh")) words.erase(words.begin());
  if (words.empty()) return words;
  if (run && (words.front() == "-m" || words.front() == "--module")) {
    words.front() = "-m";
    words.insert(words.begin(), "python");
  } else if (run && words.front().ends_with(".py")) {
    words.insert(words.begin(), "python");
  }
  const std::string& program = words.front();
  for (const std::string_view folder : {"venv/bin/", "env/bin/"}) {
    const std::size_t at = program.find(folder);
    if (at == std::string::npos || program.find('/', at + folder.size()) != std::string::npos) {
      continue;
    }
    words.front() = program.substr(at + folder.size());
    break;
  }
  return words;
}

bool is_environment_path(std::string_view path) {
  constexpr std::array<std::string_view, 12> kPlaces = {
      "VIRTUAL_ENV", "venv",  "site-packages", "dist-packages", "/.local", "conda",
      "micromamba",  "wheel", "/install",      "/usr/local",    "/deps",   "/opt/python"};
  return says_one_of(path, kPlaces);
}

bool is_manager_variable(std::string_view name) {
  constexpr std::array<std::string_view, 6> kBegins = {"PIP_",    "UV_",    "POETRY_",
                                                       "PIPENV_", "CONDA_", "PDM_"};
  if (name == "VIRTUAL_ENV" || name == "MAMBA_DOCKERFILE_ACTIVATE") return true;
  return std::any_of(kBegins.begin(), kBegins.end(),
                     [&](std::string_view begin) { return name.starts_with(begin); });
}

bool brings_tool(std::string_view command) {
  constexpr std::array<std::string_view, 12> kToolInstallers = {
      "astral.sh/uv",  "uv-installer",    "install.python-poetry",
      "get-poetry.py", "pdm-project.org", "get-pip",
      "iniconda",      "iniforge",        "ambaforge",
      "anaconda.sh",   "Anaconda3-20",    "micro.mamba"};
  // `/miniconda3/bin/conda env create` is none.
  const std::string_view first = command.substr(0, command.find_first_of(" \t"));
  const std::string_view program = first.substr(first.rfind('/') + 1);
  constexpr std::array<std::string_view, 5> kUsers = {"conda", "mamba", "micromamba", "pip",
                                                      "pip3"};
  return !is_among(kUsers, program) && says_one_of(command, kToolInstallers);
}

bool activates_environment(const ShellCommand& command) {
  const std::vector<std::string>& words = command.words;
  if (!command.simple || words.size() < 2) return false;
  const bool conda = words[0].ends_with("conda") || words[0].ends_with("mamba");
  return conda ? words[1] == "activate"
               : (words[0] == "." || words[0] == "source") && says(words[1], "activate");
}

std::string_view why_no_key(std::string_view keyword) {
  for (const OtherInstruction& other : kOtherInstructions) {
    if (other.keyword == keyword) return other.why;
  }
  return {};
}

std::string heredoc_script(const DockerInstruction& one) {
  std::string text = one.text;
  if (text.starts_with("<<") && text.find(' ') == std::string::npos) {  // with a `#!` of its own
    const std::string& name = one.heredocs.front().name;
    text = fmt::format("cat > /tmp/step <<'{0}'\n{1}{0}\nchmod +x /tmp/step\n/tmp/step", name,
                       one.heredocs.front().text);
  } else {
    if (text.starts_with("<<")) {  // `<<EOF python3`
      const std::size_t blank = text.find(' ');
      text = text.substr(blank + 1) + ' ' + text.substr(0, blank);
    }
    for (const DockerHeredoc& heredoc : one.heredocs) {
      text += '\n' + heredoc.text + heredoc.name;
    }
  }
  return text;
}

}  // namespace mlenv
