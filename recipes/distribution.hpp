#pragma once
// What is known of each distribution that a base can be made of: names, archive, keys.
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

/// Python of a release (its `python3` package).
struct SuitePython {
  std::string_view suite;
  std::string_view minor;  ///< `3.11`
};

/// A release's number, up to its last dot that matters: `12`, `24.04`.
struct SuiteNumber {
  std::string_view suite;
  std::string_view number;
};

struct Distribution {
  std::string_view id;               ///< `debian`: in `base`, and os-release's ID
  std::string_view name;             ///< `Debian`: for people, and the Origin of its Release files
  std::string_view keyring;          ///< below /usr/share/keyrings, without its ending
  std::string_view keyring_package;  ///< Debian's package of it
  std::span<const std::string_view> suites;    ///< that `base` takes, oldest first
  std::span<const std::string_view> moving;    ///< names that move from release to release
  std::span<const std::string_view> rolling;   ///< suites without -updates and -security
  std::span<const std::string_view> sections;  ///< components of its own archive
  std::span<const std::string_view> usual;     ///< components where a recipe's source names none
  std::span<const SuitePython> pythons;        ///< of releases that do not change theirs any more
  std::span<const SuiteNumber> numbers;        ///< of `suites`, where they have one

  /// Empty: it has none yet, or mlenv does not know the suite.
  std::string_view python_of(std::string_view suite) const;
  /// Of `12`, `12.5`, `24.04`, `24.04.1`; empty when unknown.
  std::string_view suite_of_number(std::string_view number) const;
};

/// nullptr: none of ours.
const Distribution* find_distribution(std::string_view id);
std::span<const Distribution> distributions();

/// `ubuntu:jammy`: a base whose Python is of that minor version, Debian's before Ubuntu's; empty
/// where no release has it.
std::string base_with_python(std::string_view python);

/// Value of one line of os-release(5), unquoted; empty when absent.
std::string os_release_value(std::string_view text, std::string_view key);

/// `git`, `git=1:2.39.5-0+deb12u2`, `git/bookworm-backports`, each with `:amd64` after the name
/// where wanted: a package as apt-get takes it. Views into the text it was made of.
struct DebianWish {
  std::string_view name;
  std::string_view architecture;  ///< empty: none named
  std::string_view version;       ///< empty: none named
  std::string_view suite;         ///< empty: none named
};
DebianWish parse_debian_wish(std::string_view text);
/// Whether `text` can be a line of `system`: a Debian name with at most one of version and suite.
bool is_debian_wish(std::string_view text);

}  // namespace mlenv
