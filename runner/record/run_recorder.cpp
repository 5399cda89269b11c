#include "runner/record/run_recorder.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <random>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/own_entries.hpp"
#include "base/paths.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "runner/facts/probe.hpp"
#include "runner/facts/remembered.hpp"
#include "runner/record/code_state.hpp"
#include "runner/record/record_files.hpp"
#include "runner/record/run_order.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kRecordReexec = "__record";
constexpr std::uint64_t kUsageBlockBytes = 512;   // of ru_inblock and ru_oublock (getrusage(2))
constexpr std::uint64_t kMemoryUnitBytes = 1024;  // of ru_maxrss

double seconds_of(const timeval& time) {
  constexpr double kMicroseconds = 1e6;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / kMicroseconds;
}

std::string recorded_host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

/// The folder of the matrix's results, by its path in the project; what variations write there is
/// no change of the code.
std::optional<std::string> results_in_project(const RunStart& start) {
  if (!start.variation) return std::nullopt;
  std::error_code error;  // a project that was mounted is recorded without links
  const fs::path project = fs::weakly_canonical(*start.project, error);
  const fs::path results = fs::weakly_canonical(start.variation->results, error);
  if (results == project || !is_beneath(results.string(), project.string())) return std::nullopt;
  return results.lexically_relative(project).string();
}

void refuse_taken_name(const RunRecords& records, const std::string& name) {
  const std::optional<std::string> other = records.running_with_name(name);
  if (!other) return;
  throw refusal("name-taken", "a run with the name `{}` goes on", name)
      .because(fmt::format("it is run `{}`", *other))
      .hint("choose another name, or `mlenv stop " + name + "`");
}

std::optional<std::uint64_t> signal_of_exit(const Exit& exit) {
  if (!exit.signalled) return std::nullopt;
  return static_cast<std::uint64_t>(exit.code - kSignalBase);
}

}  // namespace

/// `20260301-120000-0fa4f1`: date and time, three hex digits of milliseconds, so that ids sort by
/// time, and three at random.
std::string new_run_id(std::chrono::system_clock::time_point now) {
  const std::string when = utc_text(now);  // 2026-03-01T12:00:00.250Z
  constexpr unsigned kThreeDigits = 0xfff;
  std::random_device random;
  return fmt::format("{}{}{}-{}{}{}-{:03x}{:03x}", when.substr(0, 4), when.substr(5, 2),
                     when.substr(8, 2), when.substr(11, 2), when.substr(14, 2), when.substr(17, 2),
                     std::stoi(when.substr(20, 3)), random() & kThreeDigits);
}

RunRecorder::RunRecorder(const fs::path& folder, RunStart start, const KnownState& known)
    : start_(std::move(start)),
      began_(std::chrono::steady_clock::now()),
      before_(children_so_far()) {
  const auto now = std::chrono::system_clock::now();
  start_.started = utc_text(now);
  start_.host = recorded_host_name();
  start_.boot_id = trim(read_file_if_exists("/proc/sys/kernel/random/boot_id").value_or(""));
  make_own_folders(folder);
  if (start_.name) {
    // Two that want the same name at one time: one after the other.
    const FileLock names = FileLock::wait(folder / kNamesFile, FileLock::Mode::exclusive);
    refuse_taken_name(RunRecords{folder}, *start_.name);
    publish(folder, now);
  } else {
    publish(folder, now);
  }
  known_code_ = known.code.has_value();
  start_reader(known);
}

std::optional<FileLock> hold_record(const fs::path& folder, const std::string& id,
                                    std::chrono::milliseconds deadline) {
  constexpr int kPause = 200;  // milliseconds
  const auto until = std::chrono::steady_clock::now() + deadline;
  while (fs::exists(folder / id / kStartFile)) {
    auto held = FileLock::attempt(folder / id / kHeldFile, FileLock::Mode::exclusive);
    if (held || std::chrono::steady_clock::now() >= until) return held;
    (void)::poll(nullptr, 0, kPause);
  }
  return std::nullopt;
}

RunRecorder::RunRecorder(const fs::path& folder, const std::string& id, FileLock held,
                         const RunStart& now)
    : start_(RunRecords{folder}.read_brief(id).start),
      folder_(folder / id),
      held_(std::move(held)),
      began_(std::chrono::steady_clock::now()),
      before_(children_so_far()) {
  start_.host = recorded_host_name();
  start_.boot_id = trim(read_file_if_exists("/proc/sys/kernel/random/boot_id").value_or(""));
  start_.launch = now.launch;
  if (const auto first = parse_utc(start_.started)) {
    began_ -= std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now() - *first);
  }
  write_file(folder_ / kStartFile, render_run_start(start_), /*durable=*/false);
  ::unlink((folder_ / kEndFile).c_str());
  if (!fs::exists(folder_ / kHostFile)) start_reader({});
}

/// On a full disk a record does without, as where they are read beside the run.
void RunRecorder::write_host(const std::string& facts) const {
  try {
    write_file(folder_ / kHostFile, facts, /*durable=*/false);
  } catch (const Error& error) {
    log::debug("the record has no facts of the host: {}", error.what());
  }
}

void RunRecorder::start_reader(const KnownState& known) {
  std::vector<std::string> reader = {own_executable().string(), std::string(kRecordReexec),
                                     folder_.string()};
  if (known.code) {
    write_file(folder_ / kCodeFile, render_code_state(*known.code), /*durable=*/false);
  }
  if (!known.host.empty()) write_host(known.host);
  const bool reads_code = start_.project && !known.code;
  if (!reads_code && !known.host.empty()) return;
  if (reads_code) {
    reader.push_back(*start_.project);
    for (const DeclaredOutput& output : start_.outputs) {
      if (output.in_project) reader.push_back(*output.in_project);
    }
    if (const auto results = results_in_project(start_)) reader.push_back(*results);
  }
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw os_error(errno, "cannot make a socket");
  }
  reader_ = Fd{ends[0]};
  const Fd theirs{ends[1]};
  start_detached(Purpose{"log-reader"}, reader, theirs.get());
}

void RunRecorder::publish(const fs::path& folder, std::chrono::system_clock::time_point now) {
  // Under its name only when its lock is held and its start is written: whoever sees it sees it
  // running.
  TemporaryFolder made{folder, kUnfinishedRun};
  held_ = FileLock::attempt(made.path() / kHeldFile, FileLock::Mode::exclusive);
  constexpr int kTries = 100;
  for (int tries = 1;; ++tries) {
    start_.id = new_run_id(now);
    write_file(made.path() / kStartFile, render_run_start(start_), /*durable=*/false);
    folder_ = folder / start_.id;
    note_run(folder, start_.id);
    // rename(2) to a folder that is not empty fails, as a run's never is.
    if (::rename(made.path().c_str(), folder_.c_str()) == 0) break;
    if (tries == kTries || (errno != ENOTEMPTY && errno != EEXIST)) {
      throw os_error(errno, "cannot make the record of a run in `{}`", folder.string());
    }
  }
  (void)made.release();
}

void RunRecorder::waiting(bool waits) {
  if (waits) {
    write_file(folder_ / kWaitsFile, "", /*durable=*/false);
  } else {
    ::unlink((folder_ / kWaitsFile).c_str());
    began_ = std::chrono::steady_clock::now();
    // What lies in the project's folder now is what the command is given. Nodes have a snapshot.
    if (start_.project && !known_code_ && !start_.launch) {
      reader_.reset();
      start_reader({});
    }
  }
}

void RunRecorder::started() {
  // In words: processes that are copies of this one have the socket, too, and its end comes late.
  if (reader_) (void)::send(reader_.get(), "", 1, MSG_NOSIGNAL);
  reader_.reset();
}

RunRecorder::Before RunRecorder::children_so_far() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return {seconds_of(usage.ru_utime), seconds_of(usage.ru_stime),
          static_cast<std::uint64_t>(usage.ru_inblock) * kUsageBlockBytes,
          static_cast<std::uint64_t>(usage.ru_oublock) * kUsageBlockBytes,
          static_cast<std::uint64_t>(usage.ru_maxrss) * kMemoryUnitBytes};
}

RunUsage RunRecorder::usage() const {
  const Before now = children_so_far();
  RunUsage usage;
  usage.user_seconds = now.user_seconds - before_.user_seconds;
  usage.system_seconds = now.system_seconds - before_.system_seconds;
  usage.read_bytes = now.read_bytes - before_.read_bytes;
  usage.written_bytes = now.written_bytes - before_.written_bytes;
  // A copy of ourselves counts as large as we are until it has become the command.
  rusage own{};
  ::getrusage(RUSAGE_SELF, &own);
  const std::uint64_t known_larger = std::max(
      before_.largest_process_bytes, static_cast<std::uint64_t>(own.ru_maxrss) * kMemoryUnitBytes);
  usage.largest_process_bytes =
      now.largest_process_bytes > known_larger
          ? known(now.largest_process_bytes, "getrusage(2)")
          : unknown<std::uint64_t>("mlenv itself, or a child of it before the run, was larger");
  return usage;
}

void RunRecorder::attempt_ended(const AttemptEnd& attempt) {
  constexpr std::size_t kMostKept = 50;
  constexpr double kMilliseconds = 1000;
  attempts_.ended = attempt.number;
  attempts_.last.push_back({attempt.number, utc_text(std::chrono::system_clock::now()),
                            static_cast<double>(attempt.took.count()) / kMilliseconds,
                            static_cast<std::uint64_t>(attempt.exit.code),
                            signal_of_exit(attempt.exit)});
  if (attempts_.last.size() > kMostKept) attempts_.last.erase(attempts_.last.begin());
  write_file(folder_ / kAttemptsFile, render_attempts(attempts_), /*durable=*/false);
}

namespace {

RunUsage recorded_use(const JobUsage& use) {
  constexpr std::uint64_t kKilobyte = 1024;
  RunUsage usage;
  usage.user_seconds = use.user_seconds;
  usage.system_seconds = use.system_seconds;
  usage.read_bytes = use.read_blocks * kUsageBlockBytes;
  usage.written_bytes = use.written_blocks * kUsageBlockBytes;
  usage.largest_process_bytes =
      known(use.largest_kilobytes * kKilobyte, "getrusage(2) in the container");
  return usage;
}

}  // namespace

void RunRecorder::ended(const RunOutcome& outcome,
                        const std::function<std::vector<RecordedOutput>()>& outputs,
                        std::optional<RecordedLog> log) {
  started();  // where it never did
  RunEnd end;
  measure(end);
  end.exit_code = static_cast<std::uint64_t>(outcome.exit.code);
  end.signal = signal_of_exit(outcome.exit);
  end.out_of_memory = outcome.out_of_memory;
  if (outcome.usage) end.usage = recorded_use(*outcome.usage);
  if (outcome.ended_by == EndedBy::stop) end.ended_by = "stop";
  if (outcome.ended_by == EndedBy::timeout) end.ended_by = "timeout";
  if (outputs) end.outputs = outputs();
  end.log = std::move(log);
  if (outcome.vm) write_file(folder_ / kVmFile, render_vm_use(*outcome.vm), /*durable=*/false);
  write_end(end);
}

void RunRecorder::gave_up(const Error& error, int status, std::optional<RecordedLog> log) {
  started();
  RunEnd end;
  measure(end);
  end.exit_code = static_cast<std::uint64_t>(status);
  end.failure = RunFailure{error.code(), error.frames().back()};
  if (error.frames().size() > 1) end.failure->message = error.what();
  end.log = std::move(log);
  write_end(end);
}

void RunRecorder::measure(RunEnd& end) const {
  end.ended = utc_text(std::chrono::system_clock::now());
  end.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  end.usage = usage();
}

void RunRecorder::write_end(const RunEnd& end) const {
  write_file(folder_ / kEndFile, render_run_end(end), /*durable=*/false);
}

namespace {

/// The job goes first. Where the scheduler groups sessions
/// (sched(7) "autogroup") niceness counts within ours alone, and the group has one of its own.
void step_back() {
  constexpr int kNiceness = 10;  // a tenth of what others get: still read while a machine is busy
  (void)::setpriority(PRIO_PROCESS, 0, kNiceness);
  const Fd group{::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC)};
  if (group) (void)write_quietly(group.get(), std::to_string(kNiceness));
}

/// Until the command runs, or whoever was to say so is gone.
void wait_for_start() {
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR) {
  }
}

FactSources sources(const fs::path& store, const std::function<fs::path()>& memory) {
  FactSources live = host_sources(store, temporary_root());
  try {
    return with_remembered_versions(live, OwnFolder{memory()});
  } catch (const Error& error) {
    log::debug("versions are not remembered: {}", error.what());
    return live;
  }
}

}  // namespace

std::optional<int> record_main(int argc, char** argv, const std::function<fs::path()>& memory) {
  constexpr int kWords = 3;
  if (argc < kWords || argv[1] != kRecordReexec) return std::nullopt;
  const fs::path folder = argv[2];
  step_back();
  try {
    if (argc > kWords) {
      const std::vector<std::string> outputs{argv + kWords + 1, argv + argc};
      write_file(folder / kCodeFile, render_code_state(code_state(argv[kWords], outputs)),
                 /*durable=*/false);
    }
    if (fs::exists(folder / kHostFile)) return 0;
    wait_for_start();
    const fs::path store = folder.parent_path().parent_path();
    write_file(folder / kHostFile, render_facts(probe_facts(sources(store, memory))),
               /*durable=*/false);
  } catch (const std::exception&) {
    return 1;  // the disk is full, or the record was removed: it stays without
  }
  return 0;
}

}  // namespace mlenv
