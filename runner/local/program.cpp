#include "runner/local/program.hpp"

#include <sys/resource.h>
#include <algorithm>

#include <fmt/core.h>
#include <cerrno>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "runner/local/job.hpp"
#include "runner/local/job_files.hpp"

namespace mlenv {
namespace {

std::string search_path(const Bundle& bundle) {
  for (const std::string& variable : bundle.env) {
    if (variable.starts_with("PATH=")) return variable.substr(5);
  }
  return kDefaultPath;
}

struct FoundProgram {
  ImageRoot::Program program = ImageRoot::Program::absent;
  std::string path;
};

FoundProgram search(const std::string& name, const Bundle& bundle, const JobFiles& files) {
  FoundProgram result;
  const std::string path = search_path(bundle);
  std::string_view rest = path;
  while (true) {
    const std::size_t end = rest.find(':');
    const std::string candidate = (fs::path(rest.substr(0, end)) / name).string();
    const ImageRoot::Program program = files.program(candidate);
    if (program == ImageRoot::Program::found) return {program, candidate};
    if (program == ImageRoot::Program::not_executable) result = {program, candidate};
    if (end == std::string_view::npos) return result;
    rest.remove_prefix(end + 1);
  }
}

/// What execve(2) would say of the file's first bytes. A foreign binary format may have a handler
/// (binfmt_misc): only text without `#!` is refused.
std::optional<CannotRun> bad_format(const std::string& name, const std::string& path,
                                    const JobFiles& files) {
  const std::optional<std::string> head = files.head(path);
  if (!head) return std::nullopt;
  if (!head->starts_with("#!")) {
    const bool is_binary = head->find('\0') != std::string::npos;
    if (is_binary) return std::nullopt;
    return CannotRun{126, fmt::format("cannot run `{}`: it is no program, and as a script it lacks "
                                      "a first line such as `#!/bin/sh`",
                                      name)};
  }
  const std::size_t start = head->find_first_not_of(" \t", 2);
  if (start == std::string::npos) return std::nullopt;
  const std::size_t end = head->find_first_of(std::string_view(" \t\r\n\0", 5), start);
  const std::string interpreter = head->substr(start, end - start);
  if (files.program(interpreter) != ImageRoot::Program::absent) return std::nullopt;
  return CannotRun{
      127, fmt::format("cannot run `{}`: its interpreter `{}` is not there", name, interpreter)};
}

/// Environments have no installer but the one that the recipe names.
std::string_view installer_advice(std::string_view name) {
  if (name == "pip" || name == "pip3") return "; `packages: [pip]` in the recipe puts it there";
  if (name == "uv") return "; `packages: [uv]` in the recipe puts it there";
  return "";
}

/// Bytes that execve(2) takes for arguments, variables and the pointers to them: a quarter of the
/// stack, at least 128 KiB and at most 6 MiB (fs/exec.c).
std::uint64_t most_words(const Bundle& bundle) {
  constexpr std::uint64_t kLeast = std::uint64_t{128} << 10U;
  constexpr std::uint64_t kMost = std::uint64_t{6} << 20U;
  rlimit stack{};
  std::uint64_t bytes = ::getrlimit(RLIMIT_STACK, &stack) == 0 ? stack.rlim_cur : kMost * 4;
  for (const Ulimit& one : bundle.ulimits) {
    if (one.name == "stack") bytes = one.soft.value_or(RLIM_INFINITY);
  }
  return std::clamp(bytes / 4, kLeast, kMost);
}

/// What execve(2) refuses by E2BIG, and runtimes tell in words of their own.
std::optional<CannotRun> too_long(const std::string& name, const Bundle& bundle) {
  constexpr std::size_t kMostWord = (std::size_t{128} << 10U) - 1;  // MAX_ARG_STRLEN, with its NUL
  constexpr std::size_t kShownName = 100;
  const auto refused = [&](const std::string& what, std::uint64_t bytes, std::uint64_t most) {
    return CannotRun{126, fmt::format("cannot run `{}`: {} {} bytes long, and Linux takes {} at "
                                      "most; put it into a file",
                                      printable(name.substr(0, kShownName)), what, bytes, most)};
  };
  std::uint64_t sum = name.size() + 1;
  for (const std::string& variable : bundle.env) {
    sum += variable.size() + 1 + sizeof(char*);
    if (variable.size() <= kMostWord) continue;
    const std::string key =
        printable(variable.substr(0, std::min<std::size_t>(variable.find('='), 64)));
    return refused(fmt::format("its variable `{}` is", key), variable.size(), kMostWord);
  }
  for (std::size_t i = 0; i < bundle.argv.size(); ++i) {
    const std::string& word = bundle.argv[i];
    sum += word.size() + 1 + sizeof(char*);
    if (word.size() > kMostWord) {
      return refused(fmt::format("its argument {} is", i), word.size(), kMostWord);
    }
  }
  const std::uint64_t most = most_words(bundle);
  if (sum <= most) return std::nullopt;
  return refused("its arguments and variables are", sum, most);
}

}  // namespace

std::optional<CannotRun> cannot_run(const Bundle& bundle, const ImageRoot& image) {
  const std::string& name = bundle.argv.front();
  if (std::optional<CannotRun> refused = too_long(name, bundle)) return refused;
  const JobFiles files{bundle, image};
  const bool is_path = name.find('/') != std::string::npos;
  const FoundProgram found =
      is_path ? FoundProgram{files.program(name), name} : search(name, bundle, files);
  switch (found.program) {
    case ImageRoot::Program::found:
      return bad_format(name, found.path, files);
    case ImageRoot::Program::not_executable:
      return CannotRun{126, fmt::format("cannot run `{}`: it is not an executable file", name)};
    case ImageRoot::Program::absent:
      break;
  }
  if (is_path) return CannotRun{127, fmt::format("cannot run `{}`: no such file", name)};
  return CannotRun{127, fmt::format("cannot run `{}`: not found on the image's PATH ({}){}", name,
                                    search_path(bundle), installer_advice(name))};
}

std::optional<CannotRun> refused_by_kernel(const keeper::Failed& problem,
                                           const std::string& program) {
  if (problem.step != keeper::Failed::Step::program) return std::nullopt;
  const bool is_absent = problem.error == ENOENT || problem.error == ENOTDIR;
  return CannotRun{is_absent ? 127 : 126,
                   fmt::format("cannot run `{}`: {}", program, errno_text(problem.error))};
}

}  // namespace mlenv
