#include "recipes/resolve/python_build.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/digest.hpp"
#include "base/file_digest.hpp"
#include "base/own_entries.hpp"
#include "base/process.hpp"
#include "recipes/logins.hpp"
#include "recipes/resolve/host_logins.hpp"
#include "recipes/resolve/interpreter.hpp"
#include "recipes/resolve/locations.hpp"
#include "recipes/resolve/uv.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// docs.astral.sh/uv/reference/environment, UV_PYTHON_INSTALL_MIRROR: what it replaces.
constexpr std::string_view kReleases =
    "https://github.com/astral-sh/python-build-standalone/releases/download";
constexpr std::string_view kCpython = "cpython-";
constexpr std::string_view kDefaultVariant = "default";
constexpr std::chrono::seconds kListDeadline{60};

Error list_failed(std::string why) {
  return failure("uv-failed", "uv does not list the Pythons that it could install")
      .because(std::move(why))
      .hint("bring one along with `sources: {python: {url: …, sha256: …}}`");
}

/// The last part of a URL, as it was before it became part of one.
std::string archive_name(std::string_view url) {
  constexpr std::string_view kPlus = "%2B";
  std::string name(url.substr(0, url.find_first_of("?#")));
  name.erase(0, name.rfind('/') + 1);
  for (std::size_t at = 0; (at = name.find(kPlus, at)) != std::string::npos; ++at) {
    name.replace(at, kPlus.size(), "+");
  }
  return name;
}

/// Where it is noted which bytes came from a URL. Releases are never changed in place.
fs::path origin_note(const fs::path& cache, std::string_view url) {
  return cache / "interpreters" / "from" / Digest::of(url).brief();
}

std::optional<LockedPython> known_build(const std::string& name, const fs::path& note,
                                        const fs::path& cache) {
  const std::optional<std::string> text = read_file_if_exists(note);
  if (!text) return std::nullopt;
  try {
    const Digest digest = Digest::from_hex(trim(*text));
    const fs::path path = interpreter_path(cache, digest);
    if (!is_intact_interpreter(path, digest)) return std::nullopt;
    return locked_interpreter(path, name, digest);
  } catch (const Error&) {
    return std::nullopt;  // the note is hurt
  }
}

LockedPython fetch_build(const PythonBuild& build, const std::string& name, const fs::path& note,
                         Http& http, const fs::path& cache) {
  make_own_folders(note.parent_path());
  const TemporaryFolder aside(note.parent_path());
  const fs::path came = aside.path() / "archive";
  fetch_interpreter(build.url, std::nullopt, std::nullopt, came, http);
  const Digest digest = digest_of_file(came);
  LockedPython python = locked_interpreter(came, name, digest);
  fs::rename(came, interpreter_path(cache, digest));
  write_file(note, digest.hex() + '\n', false);
  return python;
}

std::string python_mirror() {
  const std::string start = fmt::format("{}=", kPythonMirrorVariable);
  for (const std::string& text : own_environment()) {
    if (text.starts_with(start)) return text.substr(start.size());
  }
  return {};
}

}  // namespace

std::string python_to_write(const Recipe& recipe,
                            const std::function<bool(std::string_view minor)>& fits) {
  const auto* const found = std::find_if(kBuildPythons.begin(), kBuildPythons.end(), fits);
  if (recipe.base_is_image || found == kBuildPythons.end()) {
    return {};
  }
  return fmt::format("write `python: \"{}\"`", *found);
}

std::optional<PythonBuild> python_build_in(std::string_view answer, std::string_view minor) {
  const nlohmann::json list = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) throw list_failed("its answer is no list");
  std::optional<PythonBuild> newest;
  for (const nlohmann::json& one : list) {
    if (!one.is_object() || one.value("implementation", "") != "cpython" ||
        one.value("variant", "") != kDefaultVariant || one.value("libc", "") != "gnu" ||
        !one.contains("url") || !one["url"].is_string()) {
      continue;
    }
    const std::string version = one.value("version", "");
    if (version_prefix(version, 2) != minor) continue;
    if (newest && std::is_gteq(compare_versions(newest->version, version))) continue;
    newest = PythonBuild{version, one["url"].get<std::string>()};
  }
  return newest;
}

std::optional<PythonBuild> find_python_build(const fs::path& uv, std::string_view minor,
                                             std::string_view architecture) {
  Command command{Purpose{"uv-pythons"}};
  command.argv = {uv.string(),
                  "python",
                  "list",
                  "--no-config",
                  "--only-downloads",
                  "--output-format",
                  "json",
                  fmt::format("cpython-{}-linux-{}-gnu", minor, architecture)};
  command.env = uv_environment();
  if (const std::string mirror = python_mirror(); !mirror.empty()) {
    command.env->push_back(fmt::format("{}={}", kPythonMirrorVariable, mirror));
  }
  command.folder = "/";
  const Captured said = run_captured(command, kListDeadline);
  if (said.exit.code != 0) throw list_failed(without_logins(trim(said.err)));
  return python_build_in(said.out, minor);
}

LockedPython lock_python_build(const PythonBuild& build, Http& http, const fs::path& cache,
                               Progress& progress) {
  const std::string name = archive_name(build.url);
  const fs::path note = origin_note(cache, build.url);
  Activity activity{progress, "fetching Python " + build.version};
  LockedPython python = [&] {
    if (auto known = known_build(name, note, cache)) return std::move(*known);
    return while_doing("fetching Python from `" + display_url(build.url) + "`",
                       [&] { return fetch_build(build, name, note, http, cache); });
  }();
  remember_location(cache, python.digest, {build.url, python.size_bytes});
  activity.result(python.version);
  return python;
}

std::string python_build_url(std::string_view file, std::string_view mirror) {
  const std::size_t plus = file.find('+');
  if (!file.starts_with(kCpython) || plus == std::string_view::npos) return {};
  const std::string_view release = file.substr(plus + 1, file.find('-', plus) - plus - 1);
  if (!all_digits(release)) return {};
  while (mirror.ends_with('/')) mirror.remove_suffix(1);
  return fmt::format("{}/{}/{}", mirror.empty() ? kReleases : mirror, release,
                     url_path_encode(file));
}

std::string interpreter_url(const Recipe& recipe, const Lock& lock, const fs::path& cache) {
  if (recipe.sources.python) return recipe.sources.python->url.text;
  if (!lock.interpreter) return {};
  const std::string mirror = python_mirror();
  if (mirror.empty()) {
    if (const auto place = recall_location(cache, lock.interpreter->digest)) return place->url;
  }
  return python_build_url(lock.interpreter->file, mirror);
}

}  // namespace mlenv
