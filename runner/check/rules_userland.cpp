// What the image's own files need of each other, of the processor and of the kernel.
#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>

#include "base/text.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"
#include "runner/check/driver_standing.hpp"
#include "runner/check/import_remedy.hpp"
#include "runner/check/rules.hpp"
#include "runner/facts/cpu_flags.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kMostLibrariesNamed = 3;
constexpr std::size_t kMostPackagesNamed = 8;

/// OCI's name (GOARCH) for what uname(2) says.
std::string oci_architecture(const std::string& machine) {
  struct Name {
    std::string_view machine;
    std::string_view oci;
  };
  constexpr std::array<Name, 4> kNames = {
      {{"x86_64", "amd64"}, {"aarch64", "arm64"}, {"i686", "386"}, {"armv7l", "arm"}}};
  for (const Name& one : kNames) {
    if (one.machine == machine) return std::string(one.oci);
  }
  return machine;
}

/// Machines run the 32-bit programs of their kind.
bool runs(const std::string& host, const std::string& image) {
  return host == image || (host == "amd64" && image == "386") ||
         (host == "arm64" && image == "arm");
}

/// `5.15.0` of `5.15.0-91-generic`.
std::string numbers_of(const std::string& release) {
  return release.substr(0, release.find_first_not_of("0123456789."));
}

/// `GLIBC_2.38` → `2.38`
std::string number_of_symbols(const std::string& version) {
  const std::size_t at = version.find('_');
  return at == std::string::npos ? version : version.substr(at + 1);
}

/// What a need lacks here; nothing is added where the flags are there.
void find_lacking_flags(const Facts& host, const CpuNeed& need, std::vector<std::string>& missing,
                        std::vector<std::string>& untold) {
  const std::vector<std::string>& flags = *host.cpu.flags;
  const auto watched = watched_cpu_flags();
  for (const std::string& flag : need.flags) {
    if (std::find(flags.begin(), flags.end(), flag) != flags.end()) continue;
    if (host.cpu.level && level_has_flag(*host.cpu.level, flag)) continue;
    const bool is_watched = std::find(watched.begin(), watched.end(), flag) != watched.end();
    (is_watched ? missing : untold).push_back(flag);
  }
}

/// What bases have of a library's symbols, oldest first: GCC's and glibc's releases in them.
struct BaseVersions {
  std::string_view base;
  std::string_view glibc;
  std::string_view libstdcxx;
};
constexpr std::array<BaseVersions, 6> kBases = {{{"ubuntu:focal", "2.31", "3.4.28"},
                                                 {"debian:bullseye", "2.31", "3.4.28"},
                                                 {"ubuntu:jammy", "2.35", "3.4.30"},
                                                 {"debian:bookworm", "2.36", "3.4.30"},
                                                 {"ubuntu:noble", "2.39", "3.4.33"},
                                                 {"debian:trixie", "2.41", "3.4.33"}}};

/// ``, `debian:trixie` for one``; nothing where none is known.
std::string newer_base(const ImageFacts& image, const std::string& needed) {
  const bool of_glibc = needed.starts_with("GLIBC_");
  if (!of_glibc && !needed.starts_with("GLIBCXX_")) return {};
  const std::string number = number_of_symbols(needed.substr(0, needed.find(' ')));
  for (const BaseVersions& one : kBases) {
    const bool is_newer =
        !image.glibc || !is_older(one.glibc, number_of_symbols(image.glibc->present));
    if (is_newer && !is_older(of_glibc ? one.glibc : one.libstdcxx, number)) {
      return fmt::format(" (`base: {}`)", one.base);
    }
  }
  return {};
}

struct Old {
  std::vector<std::string> needed;
  std::vector<std::string> found;
};

void note_if_old(const Fact<SymbolVersions>& fact, std::string_view library, Old& old) {
  if (!fact || fact->needed.empty()) return;
  const bool enough = !fact->present.empty() &&
                      !is_older(number_of_symbols(fact->present), number_of_symbols(fact->needed));
  if (enough) return;
  old.needed.push_back(fmt::format("{} of {} (`{}`)", fact->needed, library, fact->needed_by));
  old.found.push_back(fact->present.empty() ? fmt::format("no {} in the image", library)
                                            : fact->present);
}

/// For a list in a recipe.
std::string listed_packages(const std::set<std::string>& packages) {
  std::vector<std::string> first(packages.begin(), packages.end());
  first.resize(std::min(first.size(), kMostPackagesNamed));
  return join(first, ", ");
}

}  // namespace

void architecture_differs(Case& here) {
  constexpr const char* kRule = "architecture-differs";
  const Text& machine = here.host().system.architecture;
  const std::string& wanted = here.image().architecture;
  if (wanted.empty()) return;
  if (!here.knows(kRule, "host system.architecture", machine)) return;
  const std::string found = oci_architecture(*machine);
  if (runs(found, wanted)) return;
  here.find(kRule, {wanted, found, "image architecture; " + machine.source,
                    fmt::format("build or pull it for linux/{}: `platforms` in a recipe, "
                                "`--platform` of `build` and `pull`",
                                found)});
}

void library_missing(Case& here) {
  const auto& missing = here.image().missing_libraries;
  if (!missing) return;
  // What lies elsewhere in the image is loaded by its own package first (torch for its extensions).
  const bool at_start = std::any_of(missing->begin(), missing->end(),
                                    [](const MissingLibrary& one) { return one.is_wanted(); });
  std::vector<std::string> names;
  std::vector<std::string> users;
  std::set<std::string> packages;
  for (const MissingLibrary& one : *missing) {
    if (one.from_driver || (at_start && !one.is_wanted())) continue;
    names.push_back(one.library);
    packages.insert(debian_package_of(one.library));
    users.push_back(fmt::format("`{}`{}", one.needed_by,
                                one.files > 1 ? fmt::format(" and {} more", one.files - 1) : ""));
  }
  if (names.empty()) return;
  here.find(
      "library-missing", at_start ? Severity::risks : Severity::note,
      {listed(names, kMostLibrariesNamed), "not where the linker looks, for " + listed(users, 2),
       missing.source,
       at_start
           ? fmt::format("add the package that holds it, as Debian names them: `system: [{}]` in "
                         "a recipe, else as `apt-file search {}` says",
                         listed_packages(packages), names.front())
           : "nothing, unless a program says that it cannot open them: only plugins need "
             "them, or their packages load them first"});
}

void import_fails(Case& here) {
  const auto& failed = here.image().failed_imports;
  if (!failed || failed->empty()) return;
  std::vector<std::string> names;
  std::vector<std::string> errors;
  for (const FailedImport& one : *failed) {
    names.push_back(fmt::format("`import {}`", one.import));
    errors.push_back(one.error);
  }
  const std::vector<std::string> lines = recipe_lines(*failed);
  here.find("import-fails",
            {listed(names, kMostLibrariesNamed), listed(errors, 2), failed.source,
             lines.empty() ? "look at what it says, with `mlenv run IMAGE -- python -c 'import …'`"
                           : fmt::format("add {} to the recipe", join(lines, " and "))});
}

void symbol_version_missing(Case& here) {
  const ImageFacts& image = here.image();
  Old old;
  note_if_old(image.glibc, "glibc", old);
  note_if_old(image.libstdcxx, "libstdc++", old);
  for (const MissingVersion& one :
       image.missing_versions.value.value_or(std::vector<MissingVersion>{})) {
    const bool is_told = std::any_of(old.needed.begin(), old.needed.end(), [&](const auto& text) {
      return text.starts_with(one.version + ' ');
    });
    if (is_told) continue;
    old.needed.push_back(fmt::format("{} of {} (`{}`)", one.version, one.library, one.needed_by));
    old.found.push_back(fmt::format("a {} without it", one.library));
  }
  if (old.needed.empty()) return;
  here.find("symbol-version-missing",
            {listed(old.needed, kMostLibrariesNamed), listed(old.found, kMostLibrariesNamed),
             image.glibc.source,
             fmt::format("take a newer base{} that has {}, or packages built for an older one",
                         newer_base(image, old.needed.front()),
                         old.needed.front().substr(0, old.needed.front().find(' ')))});
}

void cpu_instructions(Case& here) {
  constexpr const char* kRule = "cpu-instructions";
  const auto& needs = here.image().cpu;
  const Facts& host = here.host();
  const Text& machine = host.system.architecture;
  // Of another architecture all of them are missing.
  if (machine && oci_architecture(*machine) != here.image().architecture) return;
  if (!here.knows(kRule, "image cpu", needs) || needs->empty()) return;
  if (!here.knows(kRule, "host cpu.flags", host.cpu.flags)) return;
  std::vector<std::string> untold;
  for (const CpuNeed& need : *needs) {
    std::vector<std::string> missing;
    find_lacking_flags(host, need, missing, untold);
    if (missing.empty()) continue;
    here.find(
        kRule,
        {fmt::format("{} for {}", join(missing, ", "), need.who),
         host.cpu.model ? *host.cpu.model : "a processor without",
         fmt::format("{}; {}", needs.source, host.cpu.flags.source),
         fmt::format("take a build of {} for older processors, or an older version of it; as it "
                     "is it ends with \"Illegal instruction\"",
                     need.who)});
    return;
  }
  if (!untold.empty()) {
    here.cannot_judge(kRule, "host cpu.flags",
                      "facts of a host do not tell of " + join(untold, ", "),
                      "look for these flags in the host's /proc/cpuinfo");
  }
}

void kernel_too_old(Case& here) {
  constexpr const char* kRule = "kernel-too-old";
  const auto& least = here.image().least_kernel;
  const Text& kernel = here.host().system.kernel;
  if (!here.knows(kRule, "image least_kernel", least) || least->empty()) return;
  if (!here.knows(kRule, "host system.kernel", kernel)) return;
  if (!is_older(numbers_of(*kernel), *least)) return;
  here.find(kRule, {"Linux " + *least + " or newer", "Linux " + *kernel,
                    fmt::format("{}; {}", least.source, kernel.source),
                    fmt::format("update the host's kernel to {} or newer, or take an image of an "
                                "older distribution; programs end with \"FATAL: kernel too old\"",
                                *least)});
}

}  // namespace mlenv
