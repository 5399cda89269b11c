#pragma once
// The records of past and present runs: STORE/runs.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "runner/record/run_record.hpp"

namespace mlenv {

class RunRecords {
 public:
  /// Makes nothing; a folder that is not there holds none.
  explicit RunRecords(fs::path folder) : folder_(std::move(folder)) {}

  /// Oldest first; ids begin with their time.
  std::vector<std::string> ids() const;
  /// With what is there of it now. Throws `damaged-run` when its start cannot be read.
  RunRecord read(const std::string& id) const;
  /// The same once the state of the code is in it, which is written beside a run and may come after
  /// a short one's end; at the latest at the deadline.
  RunRecord read_settled(const std::string& id, std::chrono::milliseconds deadline) const;
  /// A record without its host's facts, which are most of it.
  RunRecord read_brief(const std::string& id) const;
  /// `last` (the newest that can be read and is no rank of a job), `last~1` (the one before it), or
  /// an id, or a name (of the run that goes on, else of the newest that had it), or the beginning
  /// or end of one id alone. Throws `no-run` (usage) and `ambiguous` (usage).
  std::string find(std::string_view word) const;
  /// Id of the run of that name which goes on.
  std::optional<std::string> running_with_name(std::string_view name) const;
  /// Whether its mlenv lives, which may be on another machine that shares the store.
  bool goes_on(const std::string& id) const;
  /// Until it does not any more.
  void wait_for_end(const std::string& id) const;
  fs::path folder_of(const std::string& id) const { return folder_ / id; }
  /// Takes a record away; false for one whose run goes on.
  bool remove(const std::string& id) const;
  /// Unfinished records that a killed mlenv left.
  void sweep() const;
  /// What of the store all of them need to be repeated: each digest that stands in their start,
  /// also of those that cannot be read.
  std::vector<Digest> needs() const;

 private:
  RunRecord read(const std::string& id, bool with_facts) const;
  std::optional<std::string> with_name(const std::vector<std::string>& all,
                                       std::string_view name) const;
  /// Of those that can be read, so many from the newest; nullopt: there are not so many.
  std::optional<std::string> newest_readable(const std::vector<std::string>& all,
                                             std::size_t before = 0) const;

  fs::path folder_;
};

/// What a run may be called: letters, digits, `_`, `.`, `-`, the first one of the former two; not
/// `last`.
bool is_run_name(std::string_view name);

/// Where they lie in a store.
fs::path runs_folder(const fs::path& store_root);

/// UTC, RFC 3339 with milliseconds: `2026-03-01T12:00:00.250Z`.
std::string utc_text(std::chrono::system_clock::time_point when);
/// Seconds since 1970.
double unix_seconds(std::chrono::system_clock::time_point when);
/// utc_text() the other way; nullopt for what is not of that form.
std::optional<std::chrono::system_clock::time_point> parse_utc(std::string_view text);

}  // namespace mlenv
