#include "builder/imports/import_once.hpp"

#include <fcntl.h>
#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/sandbox/sandbox.hpp"
#include "builder/imports/import_program.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using ImportClock = std::chrono::steady_clock;

constexpr std::string_view kImporter = "/opt/venv/bin/python";
/// The program's own words are shorter; what is beyond was written by what it imports.
constexpr std::size_t kMostAnswerBytes = 16384;
constexpr std::size_t kLongestError = 300;

std::chrono::milliseconds left_until(ImportClock::time_point end) {
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(end - ImportClock::now()),
                  std::chrono::milliseconds{0});
}

std::string end_of(const Exit& exit) {
  if (!exit.signalled) return fmt::format("it ended Python with status {}", exit.code);
  const char* const name = ::sigabbrev_np(exit.code - kSignalBase);
  return name == nullptr ? fmt::format("ended by signal {}", exit.code - kSignalBase)
                         : fmt::format("ended by SIG{}", name);
}

std::string bounded_line(std::string_view text) {
  if (text.size() <= kLongestError) return printable(text);
  return printable(text.substr(0, kLongestError)) + " …";
}

}  // namespace

ImportOutcome judged_import(const ImportAnswer& answer, std::chrono::seconds limit) {
  if (answer.late) return {fmt::format("no end within {} seconds", limit.count()), {}};
  const std::vector<std::string_view> parts = split(answer.said, '\0');
  if (answer.exit == Exit{} && parts.size() == 1 && parts[0] == "imported") return {};
  if (answer.exit == Exit{} && parts.size() == 3 && parts[0] == "failed" && !parts[1].empty()) {
    return {bounded_line(parts[1]), bounded_line(parts[2])};
  }
  return {end_of(answer.exit), {}};
}

ImportOutcome import_once(const std::vector<std::string>& names, const Overlay& tree,
                          const std::vector<std::string>& env, std::chrono::seconds limit) {
  const auto end = ImportClock::now() + limit;
  Pipe answer = make_pipe();
  const Fd nowhere = open_file("/dev/null", O_WRONLY);
  SandboxCommand command;
  command.overlay = tree;
  command.argv = {std::string(kImporter), "-c", std::string(import_program())};
  command.argv.insert(command.argv.end(), names.begin(), names.end());
  command.env = env;
  command.folder = "/tmp";
  command.stdout_fd = answer.write_end.get();
  command.stderr_fd = nowhere.get();
  Sandbox sandbox{command};
  answer.write_end.reset();
  ImportAnswer given;
  drain(answer.read_end, end, [&](std::string_view part) {
    given.said.append(part.substr(0, kMostAnswerBytes - given.said.size()));
  });
  const std::optional<Exit> exit = sandbox.wait(left_until(end));
  given.late = !exit;
  given.exit = exit.value_or(Exit{});
  return judged_import(given, limit);
}

}  // namespace mlenv
