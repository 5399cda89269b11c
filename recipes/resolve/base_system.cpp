#include "recipes/resolve/base_system.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/error.hpp"
#include "recipes/distribution.hpp"
#include "recipes/resolve/apt_sources.hpp"
#include "recipes/resolve/base_python.hpp"
#include "recipes/resolve/debian_control.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kStatusLimit = std::uint64_t{256} << 20U;
constexpr std::uint64_t kSettingLimit = std::uint64_t{16} << 20U;

/// Of a status stanza, what resolving reads; the rest is long (Conffiles) or says something else to
/// a reader of Packages files (Status).
constexpr std::array<std::string_view, 13> kFields = {
    "Package",  "Version", "Architecture", "Multi-Arch", "Essential", "Protected", "Important",
    "Priority", "Depends", "Pre-Depends",  "Provides",   "Conflicts", "Breaks"};

const fs::path kMoreSources{"etc/apt/sources.list.d"};
const fs::path kTrusted{"etc/apt/trusted.gpg.d"};

enum class State { installed, gone, unfinished };

State state_of(std::string_view name) {
  if (name == "installed" || name == "triggers-awaited" || name == "triggers-pending")
    return State::installed;
  return name == "config-files" || name == "not-installed" ? State::gone : State::unfinished;
}

bool is_read(std::string_view field) {
  return std::any_of(kFields.begin(), kFields.end(),
                     [&](std::string_view one) { return equal_ignoring_case(one, field); });
}

void add_stanza(const ControlStanza& stanza, std::string& out) {
  stanza.each([&](std::string_view name, std::string_view value) {
    if (is_read(name)) out.append(name).append(": ").append(value).append("\n");
  });
  out.push_back('\n');
}

/// Why there is no dpkg to add packages with; empty: there is.
std::string lacks_dpkg(const StackedTrees& files) {
  if (!files.resolve(kDpkgStatus)) {
    if (!files.list("var/lib/dpkg/status.d").empty()) {
      return "it is a distroless image: its packages are noted in /var/lib/dpkg/status.d, and it "
             "has no dpkg to add others with";
    }
    const std::string id = os_release_value(files, "ID");
    return id.empty()
               ? "its files hold no /var/lib/dpkg/status"
               : fmt::format("its os-release says `{}`, and it has no /var/lib/dpkg/status", id);
  }
  if (files.is_program("usr/bin/dpkg") && files.is_program("bin/sh")) return {};
  return "it has dpkg's records, but not the programs `/usr/bin/dpkg` and `/bin/sh`";
}

class SettingsCopy {
 public:
  SettingsCopy(const StackedTrees& files, fs::path to) : files_(files), to_(std::move(to)) {}

  void copy() {
    copy_file("etc/os-release", "etc/os-release");
    copy_file("etc/apt/sources.list", "etc/apt/sources.list");
    for (const std::string& name : files_.list(kMoreSources.string())) {
      copy_file(kMoreSources / name, kMoreSources / name);
    }
    // What apt trusts where an entry names no keyring (apt-key(8), "FILES").
    copy_file("etc/apt/trusted.gpg", kTrusted / "trusted.gpg");
    for (const std::string& name : files_.list(kTrusted.string())) {
      if (name.ends_with(".gpg") || name.ends_with(".asc"))
        copy_file(kTrusted / name, kTrusted / name);
    }
    for (const AptSource& source : read_apt_sources(to_)) {
      const fs::path path = source.signed_by.lexically_normal().relative_path();
      if (!path.empty() && !fs::exists(to_ / path)) copy_file(path, path);
    }
  }

 private:
  void copy_file(const fs::path& from, const fs::path& to) const {
    const auto content = files_.read(from.string(), kSettingLimit);
    if (!content || content->empty()) return;
    make_folders((to_ / to).parent_path());
    write_file(to_ / to, *content, false);
  }

  const StackedTrees& files_;
  fs::path to_;
};

bool is_unreachable(const Error& error) {
  constexpr std::array<std::string_view, 4> kCodes = {"network", "certificate", "http-status",
                                                      "no-sources"};
  return std::find(kCodes.begin(), kCodes.end(), error.code()) != kCodes.end();
}

/// The recipe as if its base were made of that distribution's packages.
Recipe on_suite(const Recipe& recipe, const std::string& distribution, const std::string& suite) {
  Recipe on = recipe;
  on.distribution = distribution;
  on.suite = suite;
  return on;
}

void append(std::vector<DebianSource>& to, const std::vector<DebianSource>& more) {
  std::copy_if(more.begin(), more.end(), std::back_inserter(to), [&](const DebianSource& one) {
    return std::find(to.begin(), to.end(), one) == to.end();
  });
}

/// nullopt where this machine has none.
std::optional<std::vector<DebianSource>> machine_sources(const Recipe& on) {
  try {
    return debian_sources(on);
  } catch (const Error& error) {
    if (error.code() != "no-sources") throw;
    return std::nullopt;
  }
}

}  // namespace

std::variant<InstalledPackages, std::string> installed_packages(std::string_view status,
                                                                const std::string& architecture) {
  InstalledPackages found;
  std::string unfinished;
  each_stanza(status, [&](const ControlStanza& stanza) {
    std::vector<std::string_view> words;
    each_word(stanza.field("Status"), [&](std::string_view word) { words.push_back(word); });
    const std::string name{stanza.field("Package")};
    if (words.size() != 3 || name.empty() || stanza.field("Version").empty()) return;
    const State state = state_of(words[2]);
    if (state == State::unfinished || (state == State::installed && words[1] != "ok")) {
      unfinished = fmt::format("dpkg left its package `{}` as `{}`", name, stanza.field("Status"));
      return;
    }
    const std::string_view its = stanza.field("Architecture");
    if (state == State::gone || (its != "all" && its != architecture)) return;
    if (words[0] == "hold") found.held.insert(name);
    add_stanza(stanza, found.stanzas);
  });
  if (!unfinished.empty()) return unfinished;
  return found;
}

std::shared_ptr<const ScratchFolder> base_settings(const StackedTrees& files) {
  auto folder = std::make_shared<ScratchFolder>();
  SettingsCopy{files, folder->path()}.copy();
  return folder;
}

std::variant<BaseSystem, std::string> read_base_system(const StackedTrees& files,
                                                       const std::string& architecture) {
  if (std::string why = lacks_dpkg(files); !why.empty()) return why;
  BaseSystem system;
  system.distribution = os_release_value(files, "ID");
  system.suite = os_release_value(files, "VERSION_CODENAME");
  if (find_distribution(system.distribution) == nullptr) {
    return fmt::format("its os-release says `ID={}`, which is neither Debian nor Ubuntu",
                       system.distribution);
  }
  if (system.suite.empty()) return "its os-release names no VERSION_CODENAME";
  auto read = installed_packages(files.read(kDpkgStatus, kStatusLimit).value_or(""), architecture);
  if (auto* why = std::get_if<std::string>(&read)) return std::move(*why);
  auto& installed = std::get<InstalledPackages>(read);
  system.installed = std::move(installed.stanzas);
  system.held = std::move(installed.held);
  system.settings = base_settings(files);
  return system;
}

std::variant<DebianResolution, Conflict> resolve_on_base(const BaseRequest& wanted, Http& http,
                                                         const fs::path& cache,
                                                         Progress& progress) {
  const BaseSystem& base = wanted.base;
  const Recipe on = on_suite(wanted.recipe, base.distribution, base.suite);
  DebianRequest request = wanted.packages;
  request.distribution = base.distribution;
  request.suite = base.suite;
  request.installed = base.installed;
  request.held = base.held;
  const BaseSources own = base_sources(on, base.settings->path());
  std::optional<std::vector<DebianSource>> machine;
  if (own.hold_suite) {
    try {
      return resolve_debian(request, own.sources, http, cache, progress);
    } catch (const Error& error) {
      if (!is_unreachable(error)) throw;
      machine = machine_sources(on);
      if (!machine) throw;
      progress.note(
          fmt::format("the base's own package sources cannot be used, taking this machine's: {}",
                      error.frames().front()));
    }
  } else {
    machine = debian_sources(on);
    append(*machine, own.sources);
  }
  return resolve_debian(request, *machine, http, cache, progress);
}

std::vector<DebianSource> sources_on_base(const Recipe& recipe, const std::string& distribution,
                                          const std::string& suite, const fs::path& settings) {
  const Recipe on = on_suite(recipe, distribution, suite);
  std::vector<DebianSource> all = base_sources(on, settings).sources;
  if (const auto machine = machine_sources(on)) append(all, *machine);
  return all;
}

}  // namespace mlenv
