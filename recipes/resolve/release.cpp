#include "recipes/resolve/release.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/error.hpp"
#include "base/text.hpp"
#include "recipes/resolve/debian_control.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
/// Clocks that are wrong by less are no reason to stop.
constexpr std::time_t kClockTolerance = 86'400;

/// ` 3f1a…   1234 main/binary-amd64/Packages.xz`, line by line.
void parse_files(std::string_view section, std::string_view what, Release& release) {
  const std::vector<std::string> parts = word_list(section);
  for (std::size_t i = 0; i + 2 < parts.size(); i += 3) {
    const auto size = number_from<std::uint64_t>(parts[i + 1]);
    if (!size) throw failure("release-invalid", "{} has a malformed SHA256 section", what);
    release.files.emplace(parts[i + 2], ReleaseFile{*size, Digest::from_hex(parts[i])});
  }
}

/// What a Release has said so far that is not kept.
struct Seen {
  bool date = false;
  bool files = false;
  bool all_in_each = false;  ///< No-Support-for-Architecture-all: Packages
};

void take_text(std::string_view name, std::string_view value, Release& release, Seen& seen) {
  if (name == "Origin") release.origin = value;
  if (name == "Label") release.label = value;
  if (name == "Suite") release.suite = value;
  if (name == "Codename") release.codename = value;
  if (name == "Acquire-By-Hash") release.by_hash = value == "yes";
  if (name == "NotAutomatic") release.not_automatic = value == "yes";
  if (name == "ButAutomaticUpgrades") release.automatic_upgrades = value == "yes";
  if (name == "No-Support-for-Architecture-all") seen.all_in_each = value == "Packages";
  if (name == "Architectures") release.architectures = word_list(value);
  if (name == "Components") release.components = word_list(value);
  if (name == "Date") seen.date = true;
  if (name == "SHA256") seen.files = true;
}

std::time_t time_of(std::string_view name, std::string_view value, std::string_view what) {
  const auto time = parse_release_date(value);
  if (!time) throw failure("release-invalid", "{} has a malformed {}: `{}`", what, name, value);
  return *time;
}

std::optional<std::time_t> seconds_of_day(std::string_view text) {
  if (text.size() != 8 || text[2] != ':' || text[5] != ':') return std::nullopt;
  const auto hours = number_from<int>(text.substr(0, 2));
  const auto minutes = number_from<int>(text.substr(3, 2));
  const auto seconds = number_from<int>(text.substr(6, 2));
  if (!hours || !minutes || !seconds) return std::nullopt;
  if (*hours > 23 || *minutes > 59 || *seconds > 60) return std::nullopt;
  return (*hours * 60 + *minutes) * 60 + *seconds;
}

}  // namespace

std::optional<std::time_t> parse_release_date(std::string_view text) {
  const std::vector<std::string> parts = word_list(text);
  if (parts.size() != 6) return std::nullopt;
  const bool zone =
      parts[5] == "UTC" || parts[5] == "GMT" || parts[5] == "Z" || parts[5] == "+0000";
  const auto day = number_from<unsigned>(parts[1]);
  const auto year = number_from<int>(parts[3]);
  const auto month = std::find(kMonths.begin(), kMonths.end(), parts[2]);
  const auto seconds = seconds_of_day(parts[4]);
  if (!zone || !day || !year || month == kMonths.end() || !seconds) return std::nullopt;
  const auto month_number = static_cast<unsigned>(month - kMonths.begin() + 1);
  const std::chrono::year_month_day date{std::chrono::year{*year}, std::chrono::month{month_number},
                                         std::chrono::day{*day}};
  if (!date.ok()) return std::nullopt;
  const auto days = std::chrono::sys_days{date}.time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(days).count() + *seconds;
}

std::string render_time(std::time_t time) {
  const std::chrono::sys_seconds point{std::chrono::seconds{time}};
  const auto day = std::chrono::floor<std::chrono::days>(point);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{point - day};
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count());
}

const std::pair<const std::string, ReleaseFile>* Release::packages(
    std::string_view component, std::string_view architecture) const {
  for (const std::string_view extension : {".xz", ".gz", ""}) {
    const auto path = fmt::format("{}/binary-{}/Packages{}", component, architecture, extension);
    if (const auto found = files.find(path); found != files.end()) return &*found;
  }
  return nullptr;
}

Release parse_release(std::string_view text, std::string_view what) {
  Release release;
  Seen seen;
  ControlStanza{text}.each([&](std::string_view name, std::string_view value) {
    take_text(name, value, release, seen);
    if (name == "Valid-Until") release.valid_until = time_of(name, value, what);
    if (name == "Date") release.date = time_of(name, value, what);
    if (name == "SHA256") parse_files(value, what, release);
  });
  if (!seen.date) throw failure("release-invalid", "{} has no Date", what);
  if (!seen.files) throw failure("release-invalid", "{} has no SHA256 section", what);
  const auto& known = release.architectures;
  release.separate_all =
      !seen.all_in_each && std::find(known.begin(), known.end(), "all") != known.end();
  for (std::string& component : release.components) {
    component.erase(0, component.rfind('/') + 1);  // npos + 1 is 0
  }
  return release;
}

void check_release(const Release& release, const ReleaseChecks& checks, std::string_view what) {
  if (release.suite != checks.suite && release.codename != checks.suite) {
    throw failure("release-mismatch", "{} is for another suite", what)
        .because(fmt::format("needs `{}`, found Suite `{}` and Codename `{}`", checks.suite,
                             release.suite, release.codename));
  }
  if (checks.valid_until && release.valid_until && *release.valid_until < checks.now) {
    throw failure("index-expired", "{} is no longer valid", what)
        .because(fmt::format("valid until {}, and now it is {}", render_time(*release.valid_until),
                             render_time(checks.now)))
        .hint("check this machine's clock; if it is right, the mirror is out of date: use another");
  }
  if (release.date > checks.now + kClockTolerance) {
    throw failure("index-expired", "{} is not valid yet", what)
        .because(fmt::format("dated {}, and now it is {}", render_time(release.date),
                             render_time(checks.now)))
        .hint("set this machine's clock");
  }
}

}  // namespace mlenv
