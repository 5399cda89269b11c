#pragma once
// Where facts are read: the files of a host, and programs.
#include <functional>

#include "base/files.hpp"
#include "runner/facts/facts.hpp"

namespace mlenv {

/// `/` and its programs in life; in tests a folder of recorded files, and recorded answers.
struct FactSources {
  fs::path root = "/";
  fs::path store = "/";  ///< mlenv's; need not exist
  fs::path temporary = "/tmp";
  /// What a program prints; unknown where it is absent, fails (its words are in the reason) or does
  /// not end in time.
  std::function<Text(const std::vector<std::string>& argv)> ask;
  std::function<std::optional<fs::path>(std::string_view name)> find;
  /// How many this process may run on; empty: not recorded.
  std::function<Number()> usable_processors;

  /// Whether system calls tell of this host too.
  bool live() const { return root == "/"; }
  fs::path at(const fs::path& path) const { return root / path.relative_path(); }
};

/// Of this host: programs on PATH, killed after 5 s.
FactSources host_sources(fs::path store, fs::path temporary);

/// A file without blanks around; unknown when it is absent or unreadable.
Text file_text(const FactSources& from, const fs::path& path);
Number file_number(const FactSources& from, const fs::path& path);
bool present(const FactSources& from, const fs::path& path);
/// Names in a folder, sorted; unknown when there is no such folder.
Texts names_in(const FactSources& from, const fs::path& folder);
/// Where a link leads; unknown when it is none.
Text link_target(const FactSources& from, const fs::path& path);

/// The value behind `NAME` and `separator` at the start of a line, quotes removed.
std::optional<std::string> line_value(std::string_view text, std::string_view name, char separator);
/// The same as a fact, of a file's text.
Text named_value(const Text& text, std::string_view name, char separator);
/// `17`, with nothing behind it but what `unit` says; nothing where it is no number.
std::optional<std::uint64_t> number_of(std::string_view text);
/// Blank-separated.
std::vector<std::string_view> words_of(std::string_view text);

/// What a Debian-like os-release(5) says.
Text os_release(const FactSources& from);
/// Names of all processes (at most 15 bytes each: proc_pid_comm(5)), sorted; unknown where other
/// processes of the host cannot be seen.
Texts running_programs(const FactSources& from);

}  // namespace mlenv
