// The interpreter that uv is told of: an answer, not a program.
#include <nlohmann/json.hpp>

#include "base/digest.hpp"
#include "base/json.hpp"
#include "base/own_entries.hpp"
#include "base/process.hpp"
#include "base/scratch_folder.hpp"
#include "recipes/resolve/uv.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/resolve/wheel_tags.hpp"

namespace mlenv {
namespace {

/// Nothing lies there, so that nothing can be run: uv would make build environments from it.
constexpr std::string_view kNowhere = "/nonexistent";

nlohmann::json scheme() {
  nlohmann::json paths;
  for (const char* key : {"platlib", "purelib", "include", "scripts", "data"}) paths[key] = key;
  return paths;
}

nlohmann::json markers(const std::string& python, std::string_view machine) {
  return {{"implementation_name", "cpython"},
          {"implementation_version", python},
          {"os_name", "posix"},
          {"platform_machine", machine},
          {"platform_python_implementation", "CPython"},
          {"platform_release", ""},
          {"platform_system", "Linux"},
          {"platform_version", ""},
          {"python_full_version", python},
          {"python_version", version_prefix(python, 2)},
          {"sys_platform", "linux"}};
}

/// What uv's own script would print in the image. `os` and `arch` stand twice, because uv moved
/// them out of `platform` between 0.11 and 0.13.
std::string answer(const std::string& python, std::string_view glibc, std::string_view machine) {
  const std::string minor(glibc.substr(glibc.find('.') + 1));
  const nlohmann::json os = {{"name", "manylinux"}, {"major", 2}, {"minor", std::stoi(minor)}};
  const std::string program = std::string(kNowhere) + "/python";
  const nlohmann::json all = {{"result", "success"},
                              {"markers", markers(python, machine)},
                              {"sys_base_prefix", kNowhere},
                              {"sys_base_exec_prefix", kNowhere},
                              {"sys_prefix", kNowhere},
                              {"sys_base_executable", program},
                              {"sys_executable", program},
                              {"sys_path", nlohmann::json::array()},
                              {"site_packages", nlohmann::json::array()},
                              {"stdlib", kNowhere},
                              {"extension_suffixes", nlohmann::json::array()},
                              {"standalone", false},
                              {"scheme", scheme()},
                              {"virtualenv", scheme()},
                              {"os", os},
                              {"arch", machine},
                              {"platform", {{"os", os}, {"arch", machine}}},
                              {"manylinux_compatible", true},
                              {"gil_disabled", false},
                              {"debug_enabled", false},
                              {"cpu_info", {{"detected", {{"kind", "flags"}, {"flags", ""}}}}},
                              {"pointer_size", "64"}};
  return canonical(all);
}

}  // namespace

fs::path described_interpreter(const fs::path& cache, std::string_view python,
                               std::string_view glibc, std::string_view architecture) {
  const std::string said = answer(std::string(python), glibc, machine_name(architecture));
  const fs::path folder = fs::absolute(cache) / "uv" / "interpreters" / Digest::of(said).brief();
  fs::path program = folder / "python";
  if (fs::exists(program)) return program;
  make_own_folders(folder);
  write_file(folder / "answer.json", said, false);
  // The program comes last: where it is, its answer is.
  AtomicFile file(program, 0755);
  file.write(as_bytes("#!/bin/sh\nexec cat \"${0%/*}/answer.json\"\n"));
  file.commit(false);
  return program;
}

fs::path sample_interpreter(const fs::path& cache) {
  return described_interpreter(cache, "3.11.2", "2.36", "amd64");
}

bool uv_understands(const fs::path& uv, const fs::path& cache) {
  const ScratchFolder folder;
  write_file(folder.path() / "uv.toml", "", false);
  Command command{Purpose{"uv-trial"}};
  command.argv = {uv.string(),
                  "pip",
                  "compile",
                  "--offline",
                  "--quiet",
                  "--format",
                  "pylock.toml",
                  "--python",
                  sample_interpreter(cache).string(),
                  "-"};
  command.env = uv_environment();
  command.folder = folder.path();
  return run_captured(command, std::chrono::seconds(60)).exit.code == 0;
}

}  // namespace mlenv
