#pragma once
// Stages of a Dockerfile, and which of them the last one is made of.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "recipes/init/dockerfile.hpp"

namespace mlenv {

struct DockerStage {
  std::string name;   ///< lower case
  std::string image;  ///< after `FROM`, variables replaced; empty: one of them is not known
  DockerInstruction from;
  std::vector<DockerInstruction> instructions;
};

class DockerStages {
 public:
  std::vector<DockerStage> all;

  /// A stage and those that it begins with, the first one first.
  std::vector<std::size_t> chain_of(std::size_t last) const;
  /// The stage that `--from=` names; nullopt: another image.
  std::optional<std::size_t> copied_from(const DockerInstruction& one) const;

  /// Whether Python packages are installed in `path` of that stage: by its name, or by what made it
  /// (`python -m venv /build`) or leads there (`ENV PATH=/build/bin:$PATH`).
  bool is_environment(std::string_view path, std::size_t stage) const;

  /// Whether it is a folder above one: `/opt/app`, with the environment in /opt/app/venv.
  bool holds_environment(std::string_view path, std::size_t stage) const;

  /// Stages that those of `chain` copy from.
  struct Used {
    std::set<std::size_t> all;
    std::set<std::size_t> installing;  ///< what they install is copied
  };
  Used used_by(const std::vector<std::size_t>& chain) const;

 private:
  bool copies_workdir(const DockerInstruction& copy, const std::vector<std::size_t>& whole) const;
  bool exports(const std::vector<std::size_t>& whole) const;
};

}  // namespace mlenv
