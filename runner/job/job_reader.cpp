#include "runner/job/job_reader.hpp"

#include <net/if.h>
#include <array>

#include <fmt/core.h>

#include "base/duration.hpp"
#include "base/error.hpp"
#include "images/reference.hpp"
#include "recipes/text.hpp"
#include "runner/job/job_file.hpp"
#include "runner/job/words.hpp"
#include "runner/local/option_words.hpp"

namespace mlenv::job {
namespace {

constexpr std::array<std::string_view, 4> kRoleKeys = {"chief", "servers", "evaluator", "async"};
constexpr std::array<std::string_view, 3> kResourceKeys = {"memory", "cpus", "shm"};

constexpr std::uint64_t kMostGpusAsked = 1024;
constexpr std::uint64_t kMostRestarts = 1'000'000;
constexpr std::uint64_t kLargestSeed = 0xffffffff;  // as `--seed`

std::string quoted(const std::vector<std::string_view>& names) {
  std::vector<std::string> all;
  for (const std::string_view name : names) all.push_back(fmt::format("`{}`", name));
  return join(all, ", ");
}

/// What the reader of an option's words complains of, and what to do. Here it is a key.
std::string said(const Error& error) {
  std::string text = error.frames().front();
  if (text.starts_with("`--")) text.erase(1, 2);
  return error.hint().empty() ? text : text + "; " + error.hint();
}

}  // namespace

std::vector<std::string_view> role_keys() { return {kRoleKeys.begin(), kRoleKeys.end()}; }
std::vector<std::string_view> resource_keys() {
  return {kResourceKeys.begin(), kResourceKeys.end()};
}

std::optional<std::string> JobReader::word(const YamlNode& node, std::string_view key,
                                           std::string_view example) {
  const auto text = values_.text(node, fmt::format("`{}`", key), example);
  if (!text) return std::nullopt;
  if (!text->text.empty() && !has_control(text->text)) return text->text;
  values_.mistake(node, fmt::format("`{}` is {}, as in `{}`", key,
                                    text->text.empty() ? "empty; write one"
                                                       : "a text without control characters",
                                    example));
  return std::nullopt;
}

std::optional<std::uint64_t> JobReader::count(const YamlNode& node, std::string_view key,
                                              std::uint64_t least, std::uint64_t most) {
  constexpr std::size_t kDigits = 10;
  const auto text = values_.text(node, fmt::format("`{}`", key), std::to_string(least + 1));
  if (!text) return std::nullopt;
  if (text->text.size() <= kDigits && !text->text.empty() && all_digits(text->text)) {
    const std::uint64_t number = std::stoul(text->text);
    if (number >= least && number <= most) return number;
  }
  values_.mistake(node, fmt::format("`{}` is a whole number from {} to {}", key, least, most));
  return std::nullopt;
}

std::optional<bool> JobReader::flag(const YamlNode& node, std::string_view key) {
  const bool plain = node.kind == YamlKind::scalar && !node.quoted;
  if (plain && (node.text == "true" || node.text == "false")) return node.text == "true";
  values_.mistake(node, fmt::format("`{}` is `true` or `false`, without quotes", key));
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> JobReader::duration(const YamlNode& node,
                                                             std::string_view key,
                                                             std::string_view example) {
  const auto text = values_.text(node, fmt::format("`{}`", key), example);
  if (!text) return std::nullopt;
  const auto time = parse_duration(text->text);
  if (time && time->count() > 0) return time;
  values_.mistake(
      node, fmt::format("`{}` is a length of time, a number and a unit, as in `{}`", key, example));
  return std::nullopt;
}

std::optional<Mount> JobReader::mount(const YamlNode& node, const std::string& text) {
  try {
    if (has_control(text)) throw usage_error("bad-mount", "control characters are not allowed");
    return mount_of_nodes(text, folder_, parts_.storage);
  } catch (const Error& error) {
    values_.mistake(node, said(error));
    return std::nullopt;
  }
}

void JobReader::name(const YamlNode& node) {
  const auto text = word(node, "name", "bert");
  if (!text) return;
  parts_.name = text;
  if (is_image_name(*text) && text->find('/') == std::string::npos) return;
  values_.mistake(node, fmt::format("`{}` is not a name for a job: lower-case letters and digits, "
                                    "joined by single `.`, `_` or `-`",
                                    *text));
}

void JobReader::image(const YamlNode& node) { parts_.image = word(node, "image", "bert-train"); }

void JobReader::command(const YamlNode& node) {
  std::vector<std::string> words;
  for (const Placed& one : values_.texts(node, "`command`", "[python, train.py]")) {
    words.push_back(one.text);
    if (has_control(one.text, "\t\n")) {
      mistakes_.add(one.line, one.column, "control characters are not allowed");
    }
  }
  if (!words.empty() && words.front().empty()) {
    values_.mistake(node, "the first word of `command` names the program and cannot be empty");
  }
  if (!words.empty()) parts_.command = std::move(words);
}

void JobReader::nodes(const YamlNode& node) {
  const auto text = values_.text(node, "`nodes`", "4");
  if (!text) return;
  parts_.nodes = node_count_of(text->text);
  if (parts_.nodes) return;
  values_.mistake(node,
                  "`nodes` is how many there are, as in `4`, or the least and the most, as in "
                  "`\"2:4\"`");
}

void JobReader::ranks_per_node(const YamlNode& node) {
  parts_.ranks_per_node = count(node, "ranks-per-node", 1, kMostRanks);
}

void JobReader::gpus_per_node(const YamlNode& node) {
  parts_.gpus_per_node = count(node, "gpus-per-node", 0, kMostGpusAsked);
}

void JobReader::strategy(const YamlNode& node) {
  const auto text = values_.text(node, "`strategy`", "allreduce");
  if (!text) return;
  parts_.strategy = strategy_of(text->text);
  if (parts_.strategy) return;
  const auto names = strategy_names();
  const std::string near = suggestion(text->text, names);
  values_.mistake(node, fmt::format("unknown strategy `{}`{}", text->text,
                                    near.empty() ? "; there are " + quoted(names) : near));
}

void JobReader::framework(const YamlNode& node) {
  const auto text = values_.text(node, "`framework`", "torch");
  if (!text) return;
  parts_.framework = framework_of(text->text);
  if (parts_.framework) return;
  const auto names = framework_names();
  const std::string near = suggestion(text->text, names);
  values_.mistake(node, fmt::format("unknown framework `{}`{}", text->text,
                                    near.empty() ? "; there are " + quoted(names) : near));
}

void JobReader::roles(const YamlNode& node) {
  for (const auto& [key, value] : values_.members(node, "`roles`", kRoleKeys)) {
    if (value->kind == YamlKind::null) continue;
    if (key == "chief") parts_.chief = flag(*value, "chief");
    if (key == "evaluator") parts_.evaluator = flag(*value, "evaluator");
    if (key == "async") parts_.async = flag(*value, "async");
    if (key == "servers") parts_.servers = count(*value, "servers", 0, kMostRanks);
  }
}

void JobReader::check_roles(const YamlNode& root) {
  if (!parts_.names_roles() || !parts_.strategy) return;
  if (*parts_.strategy == Strategy::parameter_server) return;
  for (const auto& [key, value] : root.members) {
    if (key.text != "roles") continue;
    values_.mistake(key,
                    fmt::format("`{}` has no roles: they are of the strategy `{}`",
                                name_of(*parts_.strategy), name_of(Strategy::parameter_server)));
  }
}

void JobReader::interface(const YamlNode& node) {
  const auto text = word(node, "interface", "eth0");
  if (!text) return;
  parts_.interface = text;
  // As Linux has them (dev_valid_name).
  const bool fits = text->size() < IF_NAMESIZE && *text != "." && *text != ".." &&
                    text->find_first_of("/: ") == std::string::npos;
  if (!fits) {
    values_.mistake(node,
                    fmt::format("`{}` is no name of a network interface, such as `eth0`: one, "
                                "exactly as `ip link` shows it",
                                *text));
  }
}

void JobReader::pull_from(const YamlNode& node) {
  const auto text = word(node, "pull-from", "registry.example.org/team/bert");
  if (!text) return;
  parts_.pull_from = text;
  try {
    if (!Reference::parse(*text).host().empty()) return;
    values_.mistake(node, fmt::format("`{}` names no registry; put its host in front, as in "
                                      "`registry.example.org/team/bert`",
                                      *text));
  } catch (const Error& error) {
    values_.mistake(node, error.hint().empty() ? error.what()
                                               : fmt::format("{}; {}", error.what(), error.hint()));
  }
}

void JobReader::env(const YamlNode& node) {
  for (const auto& [key, value] : values_.members(node, "`env`", {})) {
    if (!is_env_name(key)) {
      values_.mistake(*value, fmt::format("`{}` is not a name for an environment variable", key));
    } else if (value->kind == YamlKind::null) {
      values_.mistake(*value, fmt::format("`{}` has no value; write `\"\"` for an empty one", key));
    } else if (value->kind != YamlKind::scalar) {
      values_.mistake(*value, fmt::format("the value of `{}` is {}, and a variable holds a text",
                                          key, value->kind == YamlKind::list ? "a list" : "a map"));
    } else if (has_control(value->text, "\t\n")) {
      values_.mistake(*value, fmt::format("`{}` holds control characters", key));
    } else {
      parts_.env[key] = value->text;
    }
  }
}

void JobReader::storage(const YamlNode& node) { read_storage_names(values_, node, parts_.storage); }

void JobReader::mounts(const YamlNode& node) {
  for (const Placed& one : values_.texts(node, "`mounts`", "[/shared/data:/data:ro]")) {
    YamlNode place;
    place.line = one.line;
    place.column = one.column;
    if (auto read = mount(place, one.text)) parts_.mounts.push_back(std::move(*read));
  }
}

void JobReader::workdir(const YamlNode& node) {
  const auto text = values_.text(node, "`workdir`", "/workspace");
  if (!text) return;
  parts_.workdir = text->text;
  if (is_clean_absolute_path(text->text)) return;
  values_.mistake(node, fmt::format("`{}` is not an absolute path without `.`, `..` and a `/` at "
                                    "its end",
                                    text->text));
}

void JobReader::restarts(const YamlNode& node) {
  parts_.restarts = count(node, "restarts", 0, kMostRestarts);
}

void JobReader::rescale_interval(const YamlNode& node) {
  parts_.rescale_interval = duration(node, "rescale-interval", "5m");
}

void JobReader::deadline(const YamlNode& node) {
  parts_.deadline = duration(node, "deadline", "12h");
}

void JobReader::grace(const YamlNode& node) { parts_.grace = duration(node, "grace", "30s"); }

void JobReader::preflight(const YamlNode& node) { parts_.preflight = flag(node, "preflight"); }

void JobReader::stall_timeout(const YamlNode& node) {
  parts_.stall_timeout = duration(node, "stall-timeout", "10m");
}

void JobReader::checkpoints(const YamlNode& node) {
  const auto text = values_.text(node, "`checkpoints`", "/shared/bert:/checkpoints");
  if (!text) return;
  parts_.checkpoints = mount(node, text->text);
  if (parts_.checkpoints && parts_.checkpoints->read_only) {
    values_.mistake(node, "checkpoints are written: leave `:ro` out");
  }
}

void JobReader::after(const YamlNode& node) {
  for (const Placed& one : values_.texts(node, "`after`", "[prepare]")) {
    if (!one.text.empty() && !has_control(one.text)) {
      parts_.after.push_back(one.text);
    } else {
      mistakes_.add(one.line, one.column, "`after` names runs: by name, or by id");
    }
  }
}

void JobReader::deterministic(const YamlNode& node) {
  parts_.deterministic = flag(node, "deterministic");
}

void JobReader::seed(const YamlNode& node) { parts_.seed = count(node, "seed", 0, kLargestSeed); }

void JobReader::resources(const YamlNode& node) {
  for (const auto& [key, value] : values_.members(node, "`resources`", kResourceKeys)) {
    if (value->kind != YamlKind::null) resource(key, *value);
  }
}

void JobReader::resource(const std::string& key, const YamlNode& node) {
  const auto text = values_.text(node, fmt::format("`{}`", key), key == "cpus" ? "4" : "16g");
  if (!text) return;
  try {
    if (key == "memory") parts_.memory_bytes = parse_memory(text->text);
    if (key == "cpus") parts_.cpus = parse_cpus(text->text);
    if (key == "shm") parts_.shm_bytes = parse_size("--shm", text->text);
  } catch (const Error& error) {
    values_.mistake(node, said(error));
  }
}

}  // namespace mlenv::job
