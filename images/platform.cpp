#include "images/platform.hpp"

#include <sys/utsname.h>

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "images/image_index.hpp"
#include "images/image_json.hpp"

namespace mlenv {
/// Go's names (image-spec config.md "architecture").
std::string machine_platform() {
  utsname name{};
  if (::uname(&name) != 0) return "linux/amd64";
  const std::string_view machine = name.machine;
  if (machine == "aarch64") return "linux/arm64";
  if (machine == "x86_64") return "linux/amd64";
  return "linux/" + std::string(machine);
}

Digest choose_platform(const std::string& index, std::string_view what, std::string_view platform) {
  const std::string wanted = platform.empty() ? machine_platform() : std::string(platform);
  std::set<std::string> offered;
  const nlohmann::json root = parse_image_json(index, what);
  const auto manifests = root.find("manifests");
  if (manifests == root.end() || !manifests->is_array()) {
    throw failure("bad-image", "the index `{}` lists no manifests", what);
  }
  for (const nlohmann::json& entry : *manifests) {
    if (!entry.is_object()) continue;
    const std::string found = platform_name(entry);
    if (found == wanted || (found.empty() && manifests->size() == 1)) {
      return Digest::parse(text_of(entry, "digest"));
    }
    // BuildKit's attestations are listed so; nobody can run them.
    if (found != "unknown/unknown") offered.insert(found.empty() ? "no platform" : found);
  }
  throw failure("not-found", "`{}` has no image for {}", what, wanted)
      .because(offered.empty() ? "it offers nothing"
                               : fmt::format("it offers {}", fmt::join(offered, ", ")));
}

bool is_index(const std::string& media_type, const std::string& bytes) {
  if (media_type == kIndexType || media_type == kDockerIndexType) return true;
  if (media_type == kManifestType || media_type == kDockerManifestType) return false;
  const nlohmann::json root = try_image_json(bytes);
  return root.is_object() && root.contains("manifests");
}

}  // namespace mlenv
