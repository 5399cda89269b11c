#include "recipes/resolve/wheel_hashes.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "recipes/resolve/versions.hpp"

namespace mlenv {
namespace {

/// Of a release `2.9.0` also for a build of it, `2.9.0+cu130`: that satisfies `==2.9.0`.
const ListedHashes* promised_of(const std::string& name, const std::string& version,
                                const RequirementLists& listed) {
  const ListedHashes* found = nullptr;
  for (const auto& [release, promised] : listed.hashes) {
    if (release.first != name) continue;
    if (is_same_version(release.second, version)) return &promised;
    if (version_satisfies(version, "==" + release.second)) found = &promised;
  }
  return found;
}

/// The same; throws `no-hash` for want of them where every package must have some.
const ListedHashes* required_hashes(const std::string& name, const std::string& version,
                                    const RequirementLists& listed) {
  const ListedHashes* promised = promised_of(name, version, listed);
  if (promised != nullptr || !listed.all_hashed) return promised;
  throw refusal("no-hash", "`{}` {} is needed, and no hash of it is given", name, version)
      .because(listed.all_hashed->shown("it asks for a hash of every package"))
      .hint(fmt::format("add `{}=={}` with its hashes, or leave `--require-hashes` out", name,
                        version));
}

std::size_t fitting(const PylockPackage& package, const WheelTags& tags) {
  return static_cast<std::size_t>(
      std::count_if(package.wheels.begin(), package.wheels.end(),
                    [&](const PylockWheel& wheel) { return tags.rank(wheel.file).has_value(); }));
}

Error mismatch(const PylockPackage& package, const ListedHashes& promised, const WheelTags& tags) {
  Error error =
      failure("hash-mismatch", "the Python index has other bytes of `{}` {} than `{}` promises",
              package.name, package.version, promised.place.file->shown_path.string());
  error.because(promised.place.shown(
      promised.sha256.size() == 1
          ? std::string("it promises another one")
          : fmt::format("it promises one of {} hashes", promised.sha256.size())));
  constexpr std::size_t kMost = 4;
  std::size_t shown = 0;
  for (const PylockWheel& wheel : package.wheels) {
    if (!tags.rank(wheel.file) || ++shown > kMost) continue;
    error.because(wheel.digest ? fmt::format("`{}` has sha256 {}", wheel.file, wheel.digest->hex())
                               : fmt::format("the index tells no SHA-256 of `{}`", wheel.file));
  }
  return std::move(error).hint(
      "if the release is the one that was meant, write the file anew with the tool that made it");
}

}  // namespace

void keep_promised_wheels(std::vector<PylockPackage>& packages, const RequirementLists& listed,
                          const WheelTags& tags) {
  for (PylockPackage& package : packages) {
    const ListedHashes* promised = required_hashes(package.name, package.version, listed);
    if (promised == nullptr) continue;
    PylockPackage kept = package;
    std::erase_if(kept.wheels, [&](const PylockWheel& wheel) {
      return !wheel.digest || !promised->sha256.contains(wheel.digest->hex());
    });
    if (fitting(kept, tags) == 0 && fitting(package, tags) > 0) {
      throw mismatch(package, *promised, tags);
    }
    package = std::move(kept);
  }
}

void require_promised(const SourceRelease& source, const RequirementLists& listed) {
  const ListedHashes* promised = required_hashes(source.name, source.version, listed);
  if (promised == nullptr || promised->sha256.contains(source.digest.hex())) return;
  throw failure("hash-mismatch", "the Python index has other bytes of `{}` {} than `{}` promises",
                source.name, source.version, promised->place.file->shown_path.string())
      .because(promised->place.shown("no hash of it is that of the index's source"))
      .because(fmt::format("`{}` has sha256 {}", source.file, source.digest.hex()));
}

}  // namespace mlenv
