#pragma once
// From a YAML tree to JobParts, key by key; what is wrong goes to `Mistakes` and reading goes on.
#include "recipes/recipe_reader.hpp"
#include "runner/job/parts.hpp"

namespace mlenv::job {

class JobReader {
 public:
  /// `known`: storage that has a name already.
  JobReader(JobParts& parts, Mistakes& mistakes, fs::path folder, const StorageNames& known)
      : parts_(parts), mistakes_(mistakes), values_(mistakes), folder_(std::move(folder)) {
    parts_.storage = known;
  }
  void read(const YamlNode& root);

 private:
  void read_member(const std::string& key, const YamlNode& value);
  void name(const YamlNode& node);
  void image(const YamlNode& node);
  void command(const YamlNode& node);
  void nodes(const YamlNode& node);
  void ranks_per_node(const YamlNode& node);
  void gpus_per_node(const YamlNode& node);
  void strategy(const YamlNode& node);
  void framework(const YamlNode& node);
  void roles(const YamlNode& node);
  void interface(const YamlNode& node);
  void pull_from(const YamlNode& node);
  void env(const YamlNode& node);
  void storage(const YamlNode& node);
  void mounts(const YamlNode& node);
  void workdir(const YamlNode& node);
  void restarts(const YamlNode& node);
  void rescale_interval(const YamlNode& node);
  void deadline(const YamlNode& node);
  void grace(const YamlNode& node);
  void preflight(const YamlNode& node);
  void stall_timeout(const YamlNode& node);
  void checkpoints(const YamlNode& node);
  void resources(const YamlNode& node);
  void after(const YamlNode& node);
  void deterministic(const YamlNode& node);
  void seed(const YamlNode& node);

  /// A text that is not empty and holds no control characters.
  std::optional<std::string> word(const YamlNode& node, std::string_view key,
                                  std::string_view example);
  std::optional<std::uint64_t> count(const YamlNode& node, std::string_view key,
                                     std::uint64_t least, std::uint64_t most);
  std::optional<bool> flag(const YamlNode& node, std::string_view key);
  std::optional<std::chrono::milliseconds> duration(const YamlNode& node, std::string_view key,
                                                    std::string_view example);
  std::optional<Mount> mount(const YamlNode& node, const std::string& text);
  void resource(const std::string& key, const YamlNode& node);
  void check_roles(const YamlNode& root);

  JobParts& parts_;
  Mistakes& mistakes_;
  ValueReader values_;
  fs::path folder_;
};

}  // namespace mlenv::job
