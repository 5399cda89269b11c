#include "runner/record/run_records.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

#include "base/digest_scan.hpp"
#include "base/error.hpp"
#include "base/own_entries.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/text.hpp"
#include "images/store_strangers.hpp"
#include "runner/record/record_files.hpp"
#include "runner/record/run_order.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kFewestLetters = 4;  // of a part of an id

/// A file that is being made or that somebody cut off says nothing, as one that is not there.
template <class Parse>
auto part(const fs::path& path, Parse&& parse)
    -> std::optional<decltype(parse(std::string_view{}, std::string_view{}))> {
  try {
    const std::optional<std::string> text = read_small_file_if_exists(path, size_limit::kRunRecord);
    if (!text) return std::nullopt;
    return parse(*text, path.string());
  } catch (const Error&) {
    return std::nullopt;
  }
}

RunStart start_of(const fs::path& path) {
  try {
    return parse_run_start(read_small_file(path, size_limit::kRunRecord), path.string());
  } catch (const Error& error) {
    throw failure("damaged-run", "the record of run `{}` cannot be read",
                  path.parent_path().filename().string())
        .because(error.what())
        .hint("`mlenv runs rm` takes it away");
  }
}

/// Whether the mlenv of the run lives, here or in a container that shares the store.
bool is_held(const fs::path& folder) {
  // For reading alone: the store may be somebody else's, or on a disk that is read-only.
  const Fd fd{::open((folder / kHeldFile).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  return fd && ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::string state_of(const std::optional<RunEnd>& end, bool held) {
  if (!end) return held ? "running" : "lost";
  if (end->failure) return "refused";
  if (end->signal) return "killed";
  return end->exit_code == 0 ? "done" : "failed";
}

/// 0 of `last`, 2 of `last~2`.
std::optional<std::size_t> runs_before_last(std::string_view word) {
  constexpr std::string_view kLast = "last";
  constexpr std::string_view kBefore = "last~";
  constexpr std::size_t kMostDigits = 6;
  if (word == kLast) return 0;
  if (!word.starts_with(kBefore)) return std::nullopt;
  word.remove_prefix(kBefore.size());
  std::size_t count = 0;
  if (word.empty() || word.size() > kMostDigits) return std::nullopt;
  for (const char c : word) {
    if (!is_digit(c)) return std::nullopt;
    count = count * 10 + static_cast<std::size_t>(c - '0');
  }
  return count;
}

Error no_run(std::string_view word) {
  return usage_error("no-run", "there is no run `{}`", word)
      .hint("`mlenv runs` lists them; `last` is the newest, `last~1` the one before it");
}

}  // namespace

bool is_run_name(std::string_view name) {
  const auto is_later = [](char c) {
    return is_alphanumeric(c) || c == '_' || c == '.' || c == '-';
  };
  constexpr std::size_t kLongest = 128;
  return !name.empty() && name.size() <= kLongest && name != "last" &&
         is_alphanumeric(name.front()) && std::all_of(name.begin(), name.end(), is_later);
}

fs::path runs_folder(const fs::path& store_root) { return own_part_of_store(store_root, "runs"); }

std::vector<std::string> RunRecords::ids() const {
  std::vector<std::string> ids;
  struct stat whole {};
  if (::stat(folder_.c_str(), &whole) != 0) return ids;
  for (const fs::path& path : list_folder(folder_)) {
    std::string name = path.filename().string();
    struct stat status {};
    if (!is_time_name(name) || ::lstat(path.c_str(), &status) != 0) continue;
    // What others put here, when they could, is no record of a run.
    const bool is_record = S_ISDIR(status.st_mode) && may_make(status.st_uid, whole.st_uid);
    if (is_record) ids.push_back(std::move(name));
  }
  sort_runs(folder_, ids);
  return ids;
}

RunRecord RunRecords::read(const std::string& id) const { return read(id, true); }
RunRecord RunRecords::read_brief(const std::string& id) const { return read(id, false); }

RunRecord RunRecords::read_settled(const std::string& id,
                                   std::chrono::milliseconds deadline) const {
  const auto end = std::chrono::steady_clock::now() + deadline;
  const Fd changes{::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
  const bool watches =
      changes && ::inotify_add_watch(changes.get(), (folder_ / id).c_str(), IN_MOVED_TO) >= 0;
  while (true) {
    RunRecord record = read(id);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    const bool awaited = record.end && record.start.project && !record.code;
    if (!awaited || !watches || left.count() <= 0) return record;
    pollfd wait{changes.get(), POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(left.count())) > 0) {
      std::array<char, 4096> events{};
      (void)!::read(changes.get(), events.data(), events.size());
    }
  }
}

std::vector<Digest> RunRecords::needs() const {
  std::vector<Digest> needs;
  for (const std::string& id : ids()) {
    add_digests_in_file(folder_ / id / kStartFile, needs);
  }
  return needs;
}

RunRecord RunRecords::read(const std::string& id, bool with_facts) const {
  const fs::path folder = folder_ / id;
  RunRecord record;
  record.start = start_of(folder / kStartFile);
  // The lock before the end: it is freed after the end is written.
  const bool held = is_held(folder);
  record.end = part(folder / kEndFile, parse_run_end);
  record.state = state_of(record.end, held);
  const bool waits = record.state == "running" && fs::exists(folder / kWaitsFile);
  if (waits) record.state = "queued";
  record.attempts = part(folder / kAttemptsFile, parse_attempts);
  record.ranks = part(folder / kRanksFile, parse_ranks);
  record.preflight = part(folder / kPreflightFile, job::parse_preflight);
  record.agreement = part(folder / kAgreementFile, job::parse_agreement);
  record.vm = part(folder / kVmFile, parse_vm_use);
  record.code = part(folder / kCodeFile, parse_code_state);
  if (with_facts) record.facts = part(folder / kHostFile, read_facts);
  return record;
}

std::optional<std::string> RunRecords::newest_readable(const std::vector<std::string>& all,
                                                       std::size_t before) const {
  for (auto id = all.rbegin(); id != all.rend(); ++id) {
    const std::optional<RunStart> start = part(folder_ / *id / kStartFile, parse_run_start);
    if (!start || start->job) continue;
    if (before-- == 0) return *id;
  }
  return std::nullopt;
}

std::optional<std::string> RunRecords::with_name(const std::vector<std::string>& all,
                                                 std::string_view name) const {
  if (!is_run_name(name)) return std::nullopt;
  std::optional<std::string> newest;
  for (auto id = all.rbegin(); id != all.rend(); ++id) {
    const std::optional<RunStart> start = part(folder_ / *id / kStartFile, parse_run_start);
    if (!start || start->name != name) continue;
    if (goes_on(*id)) return *id;
    if (!newest) newest = *id;
  }
  return newest;
}

std::optional<std::string> RunRecords::running_with_name(std::string_view name) const {
  for (const std::string& id : ids()) {
    if (!goes_on(id)) continue;  // most by far, and the cheaper question
    const std::optional<RunStart> start = part(folder_ / id / kStartFile, parse_run_start);
    if (start && start->name == name) return id;
  }
  return std::nullopt;
}

bool RunRecords::goes_on(const std::string& id) const { return is_held(folder_ / id); }

void RunRecords::wait_for_end(const std::string& id) const {
  // Not FileLock: the store may be one that cannot be written.
  const Fd fd{::open((folder_ / id / kHeldFile).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  while (fd && ::flock(fd.get(), LOCK_SH) != 0) {
    if (errno != EINTR) throw os_error(errno, "cannot wait for run `{}`", id);
  }
}

std::string RunRecords::find(std::string_view word) const {
  const std::vector<std::string> all = ids();
  if (const std::optional<std::size_t> before = runs_before_last(word); before && !all.empty()) {
    if (auto id = newest_readable(all, *before)) return *std::move(id);
    if (*before == 0) return all.back();
    throw no_run(word);
  }
  if (std::find(all.begin(), all.end(), word) != all.end()) return std::string(word);
  if (const auto named = with_name(all, word)) return *named;
  std::vector<std::string> found;
  for (const std::string& id : all) {
    const bool is_part = id.starts_with(word) || id.ends_with(word);
    if (word.size() >= kFewestLetters && is_part) found.push_back(id);
  }
  if (found.empty()) throw no_run(word);
  if (found.size() > 1) {
    throw usage_error("ambiguous", "`{}` is the name of more than one run", word)
        .because(fmt::format("`{}` and `{}`, to name two", found[0], found[1]))
        .hint("write more of it");
  }
  return found.front();
}

bool RunRecords::remove(const std::string& id) const {
  const fs::path folder = folder_ / id;
  if (is_held(folder)) return false;
  remove_tree(folder);
  return true;
}

void RunRecords::sweep() const {
  for (const fs::path& path : list_folder(folder_)) {
    const bool unfinished = has_temporary_name(path.filename().string(), kUnfinishedRun);
    if (unfinished && is_own_folder(path) && !is_held(path)) remove_tree(path);
  }
}

std::string utc_text(std::chrono::system_clock::time_point when) {
  const auto since = std::chrono::floor<std::chrono::milliseconds>(when.time_since_epoch());
  const auto whole = std::chrono::floor<std::chrono::seconds>(since);
  const auto seconds = static_cast<std::time_t>(whole.count());
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  constexpr int kFirstYear = 1900;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + kFirstYear,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     (since - whole).count());
}

double unix_seconds(std::chrono::system_clock::time_point when) {
  return std::chrono::duration<double>(when.time_since_epoch()).count();
}

std::optional<std::chrono::system_clock::time_point> parse_utc(std::string_view text) {
  const std::string copy{text};
  std::tm parts{};
  const char* rest = ::strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return std::nullopt;
  const std::string_view tail = rest;
  const bool whole = tail == "Z";
  constexpr std::size_t kTail = 5;  // `.250Z`
  const bool with_milliseconds = tail.size() == kTail && tail.front() == '.' &&
                                 tail.back() == 'Z' && is_digit(tail[1]) && is_digit(tail[2]) &&
                                 is_digit(tail[3]);
  if (!whole && !with_milliseconds) return std::nullopt;
  const int fraction_ms = whole ? 0 : std::stoi(std::string(tail.substr(1, 3)));
  return std::chrono::system_clock::from_time_t(::timegm(&parts)) +
         std::chrono::milliseconds(fraction_ms);
}

}  // namespace mlenv
