#include "recipes/environment.hpp"

#include <algorithm>
#include <tuple>

#include "base/paths.hpp"
#include "recipes/resolve/debian_control.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// One file a package, as images without dpkg itself have it.
constexpr std::string_view kStatusParts = "var/lib/dpkg/status.d/";
constexpr std::string_view kMetadata = ".dist-info/METADATA";

/// `NAME-VERSION` of `…/site-packages/NAME-VERSION.dist-info/METADATA`; empty for other paths, as
/// for packages within packages.
std::string_view distribution_at(std::string_view path) {
  if (!path.ends_with(kMetadata)) return {};
  path.remove_suffix(kMetadata.size());
  const std::string_view distribution = last_part(path);
  if (distribution.size() == path.size()) return {};
  const std::string_view folder = path.substr(0, path.size() - distribution.size() - 1);
  const std::string_view place = last_part(folder);
  // pip as root puts its own into dist-packages below /usr/local, apart from Debian's.
  const bool is_site =
      place == "site-packages" || (place == "dist-packages" && folder.starts_with("usr/local/"));
  return is_site ? distribution : std::string_view{};
}

bool is_installed(std::string_view status) {
  // deb822 of dpkg: want, flag, state. Parts of status.d say nothing and are there.
  return status.empty() || status.ends_with(" installed");
}

void read_status(std::string_view text, std::vector<ListedPackage>& out) {
  each_stanza(text, [&](ControlStanza stanza) {
    const std::string_view name = stanza.field("Package");
    const std::string_view version = stanza.field("Version");
    if (name.empty() || version.empty() || !is_installed(stanza.field("Status"))) return;
    ListedPackage& package = out.emplace_back();
    package.name = name;
    package.version = version;
    package.architecture = stanza.field("Architecture");
  });
}

void read_distribution(std::string_view distribution, std::vector<ListedPackage>& out) {
  const std::size_t dash = distribution.rfind('-');
  if (dash == std::string_view::npos || dash == 0) return;
  ListedPackage& package = out.emplace_back();
  package.name = normalise_wheel_name(distribution.substr(0, dash));
  package.version = unescaped_version(distribution.substr(dash + 1));
}

/// Each once, also where two folders hold it.
void settle(std::vector<ListedPackage>& packages) {
  const auto key = [](const ListedPackage& one) {
    return std::tie(one.name, one.architecture, one.version);
  };
  std::sort(packages.begin(), packages.end(),
            [&](const ListedPackage& a, const ListedPackage& b) { return key(a) < key(b); });
  packages.erase(std::unique(packages.begin(), packages.end()), packages.end());
}

}  // namespace

Environment environment_of(const Lock& lock) {
  Environment out;
  out.platform = lock.platform;
  for (const LockedDeb& deb : lock.debs) {
    out.debs.push_back(
        {deb.name, deb.version, deb.architecture, deb.size_bytes, deb.digest, deb.path, false});
  }
  for (const LockedWheel& wheel : lock.wheels) {
    out.wheels.push_back({wheel.name,
                          wheel.version,
                          {},
                          wheel.size_bytes,
                          wheel.digest,
                          wheel.file,
                          wheel.requested});
  }
  settle(out.debs);
  settle(out.wheels);
  return out;
}

Want tells_of_packages(std::string_view path) {
  const bool is_status =
      path == kDpkgStatus || (path.starts_with(kStatusParts) && !path.ends_with(".md5sums"));
  if (is_status) return Want::content;
  return distribution_at(path).empty() ? Want::nothing : Want::name;
}

Environment environment_in(const std::map<std::string, std::string>& files, std::string platform) {
  Environment out;
  out.platform = std::move(platform);
  for (const auto& [path, content] : files) {
    if (const std::string_view distribution = distribution_at(path); !distribution.empty()) {
      read_distribution(distribution, out.wheels);
    } else if (tells_of_packages(path) == Want::content) {
      read_status(content, out.debs);
    }
  }
  settle(out.debs);
  settle(out.wheels);
  return out;
}

std::string python_in(const Environment& environment) {
  const auto version_of = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = std::find_if(environment.debs.begin(), environment.debs.end(),
                                    [&](const ListedPackage& deb) { return deb.name == name; });
    if (found == environment.debs.end()) return std::nullopt;
    return std::string(upstream_version(found->version));
  };
  const std::optional<std::string> python = version_of("python3");
  if (!python) return {};
  const std::string minor = "python" + version_prefix(*python, 2);
  if (const auto version = version_of(minor + "-minimal")) return *version;
  return version_of(minor).value_or("");
}

}  // namespace mlenv
