#include "runner/launch/slurm_job.hpp"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "runner/launch/started_child.hpp"
#include "runner/local/life.hpp"

namespace mlenv::job {
namespace {

constexpr std::chrono::seconds kSlurmDeadline{60};

constexpr std::string_view kUnknownJob = "Slurm knows no job";

std::string program(std::string_view name) {
  const std::optional<fs::path> found = find_program(name);
  if (!found) {
    throw failure("no-slurm", "there is no `{}` here", name)
        .hint(
            "jobs are submitted from a machine that has Slurm's programs; `module load slurm` "
            "perhaps");
  }
  return found->string();
}

/// The value behind ` NAME=`, up to the next blank.
std::string slurm_value(std::string_view line, std::string_view name) {
  const std::string key = std::string(name) + "=";
  std::size_t at = line.find(key);
  while (at != std::string_view::npos && at != 0 && line[at - 1] != ' ') {
    at = line.find(key, at + 1);
  }
  if (at == std::string_view::npos) return {};
  const std::string_view value = line.substr(at + key.size());
  constexpr std::size_t kMost = 4096;
  const std::string found(value.substr(0, std::min(value.find_first_of(" \n"), kMost)));
  return found == "(null)" || found == "None" ? std::string{} : found;
}

int slurm_number(std::string_view text) {
  int number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc::result_out_of_range ? -1 : number;
}

/// `1:0`: status and signal. What can be neither is a failure, whatever it is.
Exit exit_in(std::string_view text) {
  constexpr int kMostStatus = 255;
  constexpr int kMostSignal = 64;
  const std::size_t colon = text.find(':');
  const int signal = colon == std::string_view::npos ? 0 : slurm_number(text.substr(colon + 1));
  const int status = slurm_number(text.substr(0, colon));
  if (signal < 0 || signal > kMostSignal || status < 0 || status > kMostStatus) return {1, false};
  if (signal != 0) return {128 + signal, true};
  return {status, false};
}

/// Ours, without what would have it tell less of the queue or cancel less than it is asked to.
std::vector<std::string> plain_environment() {
  std::vector<std::string> variables;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text = *one;
    if (!text.starts_with("SQUEUE_") && !text.starts_with("SCANCEL_")) variables.emplace_back(text);
  }
  return variables;
}

/// After its end it is told for some minutes; then only where the site keeps accounts.
std::optional<SlurmState> ask_accounts(const std::string& id) {
  if (!find_program("sacct")) return std::nullopt;
  const Captured told = ask_program({"sacct", "--allocations", "--noheader", "--parsable2",
                                     "--format=State,ExitCode,NodeList", "--jobs=" + id});
  return told.exit.code == 0 ? parse_sacct(trim(told.out)) : std::nullopt;
}

}  // namespace

bool SlurmState::is_over() const {
  static constexpr std::array<std::string_view, 11> kOver = {
      "COMPLETED", "FAILED",   "CANCELLED", "TIMEOUT", "NODE_FAIL",    "OUT_OF_MEMORY",
      "BOOT_FAIL", "DEADLINE", "PREEMPTED", "REVOKED", "LAUNCH_FAILED"};
  return std::find(kOver.begin(), kOver.end(), state) != kOver.end();
}

int SlurmState::status(int cancelled_by) const {
  if (exit.code != 0) return exit.code;
  if (state == "CANCELLED") return kSignalBase + cancelled_by;
  if (state == "TIMEOUT" || state == "DEADLINE") return kTimedOutStatus;
  return state == "COMPLETED" ? 0 : 1;
}

SlurmState parse_scontrol(std::string_view line) {
  SlurmState state;
  state.state = slurm_value(line, "JobState");
  state.reason = slurm_value(line, "Reason");
  state.nodes = slurm_value(line, "NodeList");
  state.restarts =
      static_cast<std::uint64_t>(std::max(0, slurm_number(slurm_value(line, "Restarts"))));
  state.exit = exit_in(slurm_value(line, "ExitCode"));
  return state;
}

std::optional<SlurmState> parse_sacct(std::string_view line) {
  const std::vector<std::string_view> parts = split(line.substr(0, line.find('\n')), '|');
  if (parts.size() < 3 || parts[0].empty()) return std::nullopt;
  SlurmState state;
  // `CANCELLED by 1000`
  state.state = parts[0].substr(0, parts[0].find(' '));
  state.exit = exit_in(parts[1]);
  state.nodes = parts[2];
  return state;
}

Captured ask_program(std::vector<std::string> words) {
  Command command{Purpose{"slurm"}};
  words[0] = program(words[0]);
  command.argv = std::move(words);
  command.env = plain_environment();
  return run_captured(command, kSlurmDeadline);
}

std::string submit_to_slurm(const fs::path& script) {
  const Captured told = ask_program({"sbatch", "--parsable", script.string()});
  // `123`, or `123;cluster`
  const std::string_view answer = trim(told.out);
  const std::string_view id = answer.substr(0, answer.find(';'));
  const bool is_number = !id.empty() && std::all_of(id.begin(), id.end(), is_digit);
  if (told.exit.code != 0 || !is_number) {
    throw failure("no-slurm", "Slurm does not take the job").because(last_lines(told.err));
  }
  return std::string(id);
}

std::optional<SlurmState> ask_slurm(const std::string& id) {
  const Captured told = ask_program({"scontrol", "--oneliner", "show", "job", id});
  if (told.exit.code == 0) return parse_scontrol(told.out);
  // The latter of a job of an array that has others left, and is told on standard output.
  const bool unknown = told.err.find("Invalid job id") != std::string::npos ||
                       (told.out + told.err).find(id + " not found") != std::string::npos;
  if (!unknown) return std::nullopt;
  if (std::optional<SlurmState> state = ask_accounts(id)) return state;
  throw failure("no-slurm", "{} {}", kUnknownJob, id).because(last_lines(told.err));
}

ScriptQueue parse_script_queue(std::string_view text) {
  constexpr std::string_view kBetween = "|";
  ScriptQueue queue;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t first = line.find(kBetween);
    const std::size_t second = line.find(kBetween, first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    QueuedScript& one = queue[std::string(trim(line.substr(second + 1)))];
    // Of an array a line for each job: one that runs, or waits, speaks for it.
    one.id = trim(line.substr(0, first));
    one.state = line.substr(first + 1, second - first - 1);
  }
  return queue;
}

std::optional<ScriptQueue> ask_slurm_scripts() try {
  const Captured told = ask_program(
      {"squeue", "--noheader", "--format=%F|%T|%o", fmt::format("--user={}", ::getuid())});
  if (told.exit.code != 0) return std::nullopt;
  return parse_script_queue(told.out);
} catch (const Error&) {
  return std::nullopt;
}

bool says_unknown(const Error& error) {
  const auto& frames = error.frames();
  return error.code() == "no-slurm" && !frames.empty() && frames.front().starts_with(kUnknownJob);
}

void cancel_in_slurm(const std::string& id) {
  const Captured told = ask_program({"scancel", id});
  if (told.exit.code == 0) return;
  throw failure("no-slurm", "Slurm does not cancel job {}", id).because(last_lines(told.err));
}

void kill_in_slurm(const std::string& id) {
  const Captured told = ask_program({"scancel", "--full", "--signal=KILL", id});
  if (told.exit.code == 0) return;
  throw failure("no-slurm", "Slurm does not kill job {}", id).because(last_lines(told.err));
}

void release_in_slurm(const std::string& id) {
  const Captured told = ask_program({"scontrol", "release", id});
  if (told.exit.code == 0) return;
  throw failure("no-slurm", "Slurm does not release job {}", id).because(last_lines(told.err));
}

void requeue_in_slurm(const std::string& id) {
  const Captured told = ask_program({"scontrol", "requeue", id});
  if (told.exit.code == 0) return;
  throw failure("no-slurm", "Slurm does not put job {} back into its queue", id)
      .because(last_lines(told.err));
}

void signal_in_slurm(const std::string& id, const std::string& signal) {
  const Captured told = ask_program({"scancel", "--batch", "--signal=" + signal, id});
  if (told.exit.code == 0) return;
  throw failure("no-slurm", "Slurm does not pass SIG{} on to job {}", signal, id)
      .because(last_lines(told.err));
}

void AskingPace::hurry() { wait_ = kLeast; }

void AskingPace::asked(const std::string& state) {
  constexpr std::chrono::milliseconds kMost{30'000};
  wait_ = !state.empty() && state != last_ ? kLeast : std::min(wait_ * 3 / 2, kMost);
  if (!state.empty()) last_ = state;
}

}  // namespace mlenv::job
