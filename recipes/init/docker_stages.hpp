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

  /// Whether a stage copies what lies there out of an earlier one.
  bool is_copied_on(std::string_view path, std::size_t stage) const;
  /// Whether commands of a stage make the environment at `path`, which the image that it begins
  /// with does not have.
  bool makes_environment(std::string_view path, std::size_t stage) const;
  /// Whether a stage is an image of somebody's and no commands.
  bool is_bare(std::size_t stage) const;

  /// Stages that those of `chain` copy from, and those that these copy from in turn.
  struct Used {
    std::set<std::size_t> all;
    std::set<std::size_t> installing;  ///< what they install is copied
  };
  Used used_by(const std::vector<std::size_t>& chain) const;

 private:
  /// Where a folder of a stage was before that stage copied it.
  struct Origin {
    std::size_t stage;
    std::string path;
  };
  std::vector<Origin> origins(std::string_view path, std::size_t stage, bool below) const;
  void follow(const Origin& copied, Used& used, std::size_t& looks) const;
  void follow_all(const DockerInstruction& copy, std::size_t stage, Used& used) const;
  bool copies_environment(const DockerInstruction& copy, std::size_t stage) const;
  bool is_environment(std::string_view path, std::size_t stage, std::size_t& looks) const;
  bool holds_environment(std::string_view path, std::size_t stage, std::size_t& looks) const;
  bool copies_workdir(const DockerInstruction& copy, const std::vector<std::size_t>& whole) const;
  bool exports(const std::vector<std::size_t>& whole) const;
};

}  // namespace mlenv
