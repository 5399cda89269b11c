#include "runner/job/job_file.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/text.hpp"
#include "runner/job/job_reader.hpp"

namespace mlenv::job {
namespace {

constexpr std::array<std::string_view, 26> kKeys = {
    "name",           "image",         "command",          "nodes",
    "ranks-per-node", "gpus-per-node", "strategy",         "roles",
    "framework",      "env",           "interface",        "mounts",
    "workdir",        "grace",         "restarts",         "deadline",
    "checkpoints",    "resources",     "rescale-interval", "preflight",
    "stall-timeout",  "after",         "deterministic",    "seed",
    "pull-from",      "storage"};

}  // namespace

std::vector<std::string_view> job_keys() { return {kKeys.begin(), kKeys.end()}; }

void JobReader::read(const YamlNode& root) {
  if (root.kind != YamlKind::map) {
    mistakes_.add(std::max(root.line, 1), std::max(root.column, 1),
                  root.kind == YamlKind::null ? "the job is empty; it needs at least `image`"
                                              : "a job is a map: lines of `key: value`");
    return;
  }
  const auto members = values_.members(root, "a job", kKeys);
  // Wherever it stands: mounts name what it says.
  for (const auto& [key, value] : members) {
    if (key == "storage") storage(*value);
  }
  for (const auto& [key, value] : members) {
    if (value->kind != YamlKind::null) {
      read_member(key, *value);  // else as if the key were not there
    }
  }
  check_roles(root);
}

void JobReader::read_member(const std::string& key, const YamlNode& value) {
  using Read = void (JobReader::*)(const YamlNode&);
  struct Reading {
    std::string_view key;
    Read read;
  };
  static constexpr std::array<Reading, 25> kReadings = {
      {{"name", &JobReader::name},
       {"image", &JobReader::image},
       {"command", &JobReader::command},
       {"nodes", &JobReader::nodes},
       {"ranks-per-node", &JobReader::ranks_per_node},
       {"gpus-per-node", &JobReader::gpus_per_node},
       {"strategy", &JobReader::strategy},
       {"framework", &JobReader::framework},
       {"roles", &JobReader::roles},
       {"interface", &JobReader::interface},
       {"pull-from", &JobReader::pull_from},
       {"env", &JobReader::env},
       {"mounts", &JobReader::mounts},
       {"workdir", &JobReader::workdir},
       {"restarts", &JobReader::restarts},
       {"rescale-interval", &JobReader::rescale_interval},
       {"deadline", &JobReader::deadline},
       {"grace", &JobReader::grace},
       {"preflight", &JobReader::preflight},
       {"stall-timeout", &JobReader::stall_timeout},
       {"checkpoints", &JobReader::checkpoints},
       {"resources", &JobReader::resources},
       {"after", &JobReader::after},
       {"deterministic", &JobReader::deterministic},
       {"seed", &JobReader::seed}}};
  for (const Reading& reading : kReadings) {
    if (reading.key == key) (this->*reading.read)(value);
  }
}

JobParts parse_job_file(std::string_view text, const fs::path& shown_path,
                        const StorageNames& known) {
  Mistakes mistakes(shown_path, std::string(text));
  const YamlDocument document = parse_yaml(text);
  for (const YamlMistake& mistake : document.mistakes) {
    mistakes.add(mistake.line, mistake.column, mistake.message);
  }
  JobParts parts;
  if (document.complete) {
    JobReader(parts, mistakes, shown_path.parent_path(), known).read(document.root);
  }
  if (!mistakes.empty()) throw mistakes.error("job-invalid");
  return parts;
}

JobParts read_job_file(const fs::path& path, const StorageNames& known) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    throw usage_error("job-invalid", "`{}` is a folder", path.string())
        .hint("name the job's file, as in `job.yaml`");
  }
  return parse_job_file(read_small_file(path, size_limit::kJobFile), path, known);
}

}  // namespace mlenv::job
