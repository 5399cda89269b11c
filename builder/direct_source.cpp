#include "builder/direct_source.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>

#include "base/file_digest.hpp"
#include "base/own_entries.hpp"

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/git_source.hpp"
#include "recipes/source_tree.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using AddressKind = PackageAddress::Kind;

LockedSource source_described(const PackageAddress& address, Digest digest) {
  LockedSource source{{}, {}, {}, 0, std::move(digest), {}};
  source.subdirectory = address.subdirectory;
  return source;
}

DirectSource of_tree(LockedSource locked, SourceTree tree) {
  const fs::path folder = tree.folder;
  return {std::move(locked),
          [tree = std::move(tree)](const fs::path& to) { copy_source_tree(tree, to); },
          {},
          folder};
}

DirectSource of_file(LockedSource locked, const PackageAddress& address, const fs::path& path) {
  locked.file = address.file();
  locked.size_bytes = fs::file_size(path);
  const std::string file = locked.file;
  return {std::move(locked),
          [path, file](const fs::path& folder) { unpack_source(path, file, folder); },
          path,
          {}};
}

void move_into(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  throw os_error(errno, "cannot write `{}`", to.string());
}

/// In the cache, by its digest: a copy that nobody writes while it is used.
fs::path keep_in_cache(const fs::path& cache, const Digest& digest, const fs::path& from) {
  fs::path path = cache / "sources" / digest.hex();
  move_into(from, path);
  return path;
}

DirectSource git(const PackageAddress& address, const std::string& commit,
                 const std::optional<Digest>& expected, const BuildPlace& place) {
  const std::string found =
      commit.empty() ? find_git_commit(address.place, address.reference, place.progress) : commit;
  SourceTree tree = provide_git_tree(address.place, found, expected, place.cache, place.progress);
  LockedSource locked = source_described(address, tree.digest());
  locked.git = address.place;
  locked.reference = address.reference;
  locked.commit = found;
  return of_tree(std::move(locked), std::move(tree));
}

DirectSource path(const DirectRequirement& wanted, const BuildPlace& place) {
  const PackageAddress& address = wanted.address;
  const fs::path found = find_direct_path(wanted);
  if (!address.is_wheel() && !address.is_archive()) {
    SourceTree tree = read_project_tree(*wanted.recipe, address.place);
    LockedSource locked = source_described(address, tree.digest());
    locked.path = address.place;
    return of_tree(std::move(locked), std::move(tree));
  }
  make_own_folders(place.cache / "sources");
  const TemporaryFolder aside(place.cache / "sources");
  const fs::path own = aside.path() / "file";
  fs::copy_file(found, own);
  const Digest digest = digest_of_file(own);
  LockedSource locked = source_described(address, digest);
  locked.path = address.place;
  return of_file(std::move(locked), address, keep_in_cache(place.cache, digest, own));
}

DirectSource url(const DirectRequirement& wanted, const std::optional<Digest>& expected,
                 const BuildPlace& place) {
  const PackageAddress& address = wanted.address;
  std::optional<Digest> known = expected;
  if (!known && !address.sha256.empty()) known = Digest::from_hex(address.sha256);
  make_folders(place.cache / "sources");
  fs::path kept = known ? place.cache / "sources" / known->hex() : fs::path{};
  Digest digest = known ? *known : Digest::of("");
  if (!known || !fs::exists(kept) || digest_of_file(kept) != *known) {
    const Activity activity(place.progress, "download " + address.file(), 0, "");
    const TemporaryFolder aside(place.cache / "sources");
    const fs::path own = aside.path() / "file";
    {
      const Fd out = open_file(own, O_RDWR | O_CREAT | O_EXCL);
      place.http.download({address.place, known, std::nullopt, {}, {}}, out.get(), {});
    }
    digest = digest_of_file(own);
    kept = keep_in_cache(place.cache, digest, own);
  }
  LockedSource locked = source_described(address, digest);
  locked.url = address.place;
  return of_file(std::move(locked), address, kept);
}

constexpr std::string_view kArchival = ".git_archival.txt";

/// nullopt where it is no plain file, or is reached through a link.
std::optional<std::string> plain_text(const fs::path& folder, const fs::path& path) {
  std::error_code absent;
  const fs::path found = fs::canonical(folder / path, absent);
  if (absent || found != fs::canonical(folder) / path || !fs::is_regular_file(found)) {
    return std::nullopt;
  }
  return read_small_file(found, size_limit::kPyproject);
}

/// Whether a build tool that it asks for reads the version from git.
bool asks_git(const DirectSource& source) {
  constexpr std::array<std::string_view, 4> kTools = {"setuptools-scm", "hatch-vcs",
                                                      "vcs-versioning", "flit-scm"};
  const fs::path project = source.locked.subdirectory;
  if (!plain_text(source.tree, project / "pyproject.toml")) return false;
  const std::string shown = source.locked.shown();
  const BuildSystem system = read_build_system(source.tree / project, shown);
  return std::any_of(
      system.requirements.begin(), system.requirements.end(), [&](const std::string& text) {
        const auto read = parse_requirement(text);
        const auto* one = std::get_if<Requirement>(&read);
        return one != nullptr &&
               std::find(kTools.begin(), kTools.end(), one->normalised_name()) != kTools.end();
      });
}

}  // namespace

void tell_git_version(DirectSource& source, const std::string* describe, const BuildPlace& place) {
  LockedSource& locked = source.locked;
  if (locked.git.empty() || !asks_git(source)) return;
  locked.describe = describe != nullptr
                        ? *describe
                        : describe_git_commit(locked.git, locked.commit, place.progress);
  if (locked.describe.empty()) return;
  const std::string text =
      fmt::format("node: {}\ndescribe-name: {}\n", locked.commit, locked.describe);
  const fs::path project = locked.subdirectory;
  source.lay = [lay = source.lay, text, project](const fs::path& folder) {
    lay(folder);
    for (const fs::path& path : {fs::path(kArchival), project / kArchival}) {
      const auto there = plain_text(folder, path);
      const bool told = there && there->find("$Format:") == std::string::npos;
      const bool free = there || !fs::exists(fs::symlink_status(folder / path));
      if (!told && free && fs::is_directory(folder / path.parent_path())) {
        write_file(folder / path, text, /*durable=*/false);
      }
    }
  };
}

DirectSource bring_direct(const DirectRequirement& wanted, const std::string& commit,
                          const std::optional<Digest>& expected, const BuildPlace& place) {
  switch (wanted.address.kind) {
    case AddressKind::git:
      return git(wanted.address, commit, expected, place);
    case AddressKind::path:
      return path(wanted, place);
    case AddressKind::url:
      break;
  }
  return url(wanted, expected, place);
}

}  // namespace mlenv
