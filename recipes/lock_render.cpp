// Lock → text. Every package is one line, so that a diff of two locks reads as a list of changes.
#include <algorithm>

#include <fmt/core.h>

#include "recipes/lock.hpp"
#include "recipes/lock_base.hpp"
#include "recipes/lock_data.hpp"
#include "recipes/lock_parts.hpp"
#include "recipes/lock_run.hpp"
#include "recipes/lock_sources.hpp"
#include "recipes/lock_steering.hpp"
#include "recipes/text.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

void line(std::string& out, std::string_view key, std::string_view value) {
  if (!value.empty()) out += fmt::format("{} = {}\n", key, toml_text(value));
}

void list_line(std::string& out, std::string_view key, const std::vector<std::string>& values) {
  if (!values.empty()) out += fmt::format("{} = {}\n", key, toml_list(values));
}

/// A line each: such lists may be long.
void rows(std::string& out, std::string_view key, const std::vector<std::string>& values) {
  if (values.empty()) return;
  out += fmt::format("{} = [\n", key);
  for (const std::string& value : values) out += fmt::format("  {},\n", toml_text(value));
  out += "]\n";
}

void render_request(std::string& out, const Request& request) {
  out += "\n[request]\n";
  line(out, "base", request.base);
  line(out, "python", request.python);
  line(out, "interpreter", request.interpreter);
  line(out, "framework", request.framework);
  line(out, "cuda", request.cuda);
  line(out, "driver", request.driver);
  list_line(out, "gpus", request.gpus);
  list_line(out, "libraries", request.libraries);
  list_line(out, "packages", request.packages);
  rows(out, "requirements", request.requirements);
  rows(out, "constraints", request.constraints);
  if (request.hashes) line(out, "hashes", request.hashes->hex());
  list_line(out, "system", request.system);
  out += render_steering(request.steering);
}

void render_settings(std::string& out, const Settings& settings) {
  out += "\n[settings]\n";
  line(out, "name", settings.name);
  line(out, "workdir", settings.workdir);
  list_line(out, "command", settings.command);
  out += fmt::format("bytecode = {}\n", settings.bytecode);
  if (settings.sources) line(out, "sources", settings.sources->hex());
  out += render_run_steps(settings.run);
  out += render_data(settings.data);
  if (settings.env.empty()) return;
  out += "\n[settings.env]\n";
  for (const auto& [key, value] : settings.env) {
    out += fmt::format("{} = {}\n", toml_key(key), toml_text(value));
  }
}

void render_resolved(std::string& out, const Lock& lock, const std::string& folder) {
  out += fmt::format("\n[{}resolved]\n", folder);
  line(out, "distribution", lock.distribution);
  line(out, "suite", lock.suite);
  line(out, "python", lock.python);
  if (lock.cuda) {
    line(out, "cuda", lock.cuda->release);
    line(out, "min-driver", lock.cuda->min_driver);
    line(out, "cudnn", lock.cuda->cudnn);
    line(out, "nccl", lock.cuda->nccl);
    list_line(out, "architectures", lock.cuda->architectures);
  }
}

std::string render(const LockedDeb& deb) {
  return fmt::format(
      "  {{ name = {}, version = {}, architecture = {}, path = {}, size = {}, sha256 = \"{}\" "
      "}},\n",
      toml_text(deb.name), toml_text(deb.version), toml_text(deb.architecture), toml_text(deb.path),
      deb.size_bytes, deb.digest.hex());
}

std::string render(const LockedWheel& wheel) {
  return fmt::format("  {{ name = {}, version = {}, file = {}, size = {}, sha256 = \"{}\"{} }},\n",
                     toml_text(wheel.name), toml_text(wheel.version), toml_text(wheel.file),
                     wheel.size_bytes, wheel.digest.hex(),
                     wheel.requested ? ", requested = true" : "");
}

std::string render(const LockedPython& python) {
  return fmt::format("{{ version = {}, file = {}, size = {}, sha256 = \"{}\" }}",
                     toml_text(python.version), toml_text(python.file), python.size_bytes,
                     python.digest.hex());
}

template <typename Package>
void render_packages(std::string& out, std::string_view key, const std::vector<Package>& all) {
  if (all.empty()) return;
  std::vector<std::string> rows;
  rows.reserve(all.size());
  for (const Package& one : all) rows.push_back(render(one));
  out += fmt::format("{} = [\n{}]\n", key, join(rows, ""));
}

}  // namespace

std::string render_head(int revision) {
  std::string out = "# Written by `mlenv lock`: every package by name, version, size and digest.\n";
  out += fmt::format("version = {}\nrevision = {}\n", Lock::kVersion, revision);
  return out;
}

std::string render_common(const Lock& lock) {
  std::string out =
      fmt::format("platform = {}\nepoch = {}\n", toml_text(lock.platform), lock.epoch);
  render_request(out, lock.request);
  render_settings(out, lock.settings);
  return out;
}

std::string render_part(const Lock& lock, const std::string& folder) {
  std::string out;
  render_resolved(out, lock, folder);
  if (lock.base) out += render_base(*lock.base, folder);
  if (lock.debs.empty() && lock.wheels.empty() && !lock.interpreter) return out;
  out += fmt::format("\n[{}packages]\n", folder);
  if (lock.interpreter) out += fmt::format("interpreter = {}\n", render(*lock.interpreter));
  render_packages(out, "debian", lock.debs);
  render_packages(out, "wheels", lock.wheels);
  out += render_sources(lock.sources);
  render_packages(out, "build-wheels", lock.build_wheels);
  return out;
}

std::string render_lock(const Lock& lock) { return render_locks({{lock}}); }

Digest lock_digest(const Lock& lock) { return locks_digest({{lock}}); }

}  // namespace mlenv
