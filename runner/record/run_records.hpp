#pragma once
// The records of past and present runs: STORE/runs.
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

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
  /// `last` (the newest that can be read), or an id, or the beginning or end of one id alone.
  /// Throws `no-run` (usage) and `ambiguous` (usage).
  std::string find(std::string_view word) const;
  /// Takes a record away; false for one whose run goes on.
  bool remove(const std::string& id) const;
  /// Unfinished records that a killed mlenv left.
  void sweep() const;

 private:
  RunRecord read(const std::string& id, bool with_facts) const;
  std::string newest_readable(const std::vector<std::string>& all) const;

  fs::path folder_;
};

/// Where they lie in a store.
fs::path runs_folder(const fs::path& store_root);

/// UTC, RFC 3339 with milliseconds: `2026-03-01T12:00:00.250Z`.
std::string utc_text(std::chrono::system_clock::time_point when);
/// The other way; nullopt for what is not of that form.
std::optional<std::chrono::system_clock::time_point> parse_utc(std::string_view text);

}  // namespace mlenv
